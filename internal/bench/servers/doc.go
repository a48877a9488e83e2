// Package servers has the servers that a bench runs on, the addresses to reach
// them, and the resources that they and this process have used.
package servers
