// Package servers owns the servers that a bench runs on, the ways to them, and
// what they and this process have used.
package servers
