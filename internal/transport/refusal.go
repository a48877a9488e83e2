package transport

// Which part of a node's answer to a login may appear in errors. The answer may
// quote the command, and with it the password: a server that does not know AUTH
// does, and a malicious server can.
// Invariant: only the texts in this file are passed on from an answer to a
// login.

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// harmless are the beginnings of answers, as Redis and Valkey write them. The
// rest of such an answer is cut off.
var harmless = []string{
	"WRONGPASS invalid username-password pair or user is disabled.",
	"ERR invalid password",
	"ERR Client sent AUTH, but no password is set",
	"ERR AUTH <password> called without any password configured for the default user. Are you sure your " +
		"configuration is correct?",
	"ERR wrong number of arguments for 'auth' command",
	"NOAUTH Authentication required.",
	"NOAUTH HELLO must be called with the client already authenticated",
	"ERR DB index is out of range", "ERR invalid DB index", "ERR SELECT is not allowed in cluster mode",
	"ERR Client names cannot contain spaces, newlines or special characters.",
	"ERR max number of clients reached", "ERR max number of clients + cluster connections reached",
	"DENIED Redis is running in protected mode because protected mode is enabled",
	"DENIED Running in protected mode because protected mode is enabled",
	"LOADING Redis is loading the dataset in memory", "LOADING Valkey is loading the dataset in memory",
	"BUSY Redis is busy running a script.", "BUSY Valkey is busy running a script.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"ERR This instance has cluster support disabled",
}

// withText are codes that are enough on their own, with the text that replaces
// the server's.
var withText = map[string]string{
	"NOPERM": "this user has no permissions to run ",
	"ERR":    "unknown command ",
}

// codes are further codes that servers return.
var codes = []string{"ERR", "WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "LOADING", "BUSY", "MASTERDOWN",
	"READONLY", "OOM", "MISCONF", "CLUSTERDOWN", "MOVED", "NOREPLICAS", "TRYAGAIN", "NOPROTO", "UNKILLABLE"}

// SafeRefusal returns what may be passed on of the answer to a login command.
// command is the command's first word.
func SafeRefusal(answer resp.Error, command string) resp.Error {
	for _, text := range harmless {
		if strings.HasPrefix(string(answer), text) {
			return resp.Error(text)
		}
	}
	code := answer.Code()
	if text := withText[code]; text != "" &&
		(code == "NOPERM" || strings.HasPrefix(string(answer), "ERR unknown command")) {
		return resp.Error(code + " " + text + "'" + command + "'")
	}
	for _, known := range codes {
		if code == known {
			return resp.Error(code + " (the server's text is withheld: it may quote the password)")
		}
	}
	return "ERR (the server's answer is withheld: it may quote the password)"
}

// Safe is SafeRefusal for an error of go-redis, which logs in on its own before
// the command. An error that is not a server's answer is returned unchanged.
func Safe(err error, command string) error {
	if answer, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		return SafeRefusal(resp.Error(answer.Error()), command)
	}
	return err
}

// refused is SafeRefusal for the error from reading the answer to a step. Other
// errors are returned unchanged.
func (s loginStep) refused(err error) error {
	if answer, ok := errors.AsType[resp.Error](err); ok {
		return SafeRefusal(answer, s.words[0])
	}
	return err
}
