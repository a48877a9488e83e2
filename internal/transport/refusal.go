package transport

// This file owns what may be repeated of a node's answer to a login. Such an
// answer may quote the command, and so the password: a server that does not
// know AUTH does, and one that lies can.
// Invariant: of an answer to a login nothing is passed on but what stands here.

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/internal/resp"
)

// harmless are beginnings of answers, as Redis and Valkey write them. An answer
// is cut off behind them.
var harmless = []string{
	"WRONGPASS invalid username-password pair or user is disabled.",
	"ERR invalid password",
	"ERR Client sent AUTH, but no password is set",
	"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
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

// withText are codes that say enough alone, with the text that stands for the
// server's.
var withText = map[string]string{
	"NOPERM": "this user has no permissions to run ",
	"ERR":    "unknown command ",
}

// codes are those that servers give beside the ones above.
var codes = []string{"ERR", "WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "LOADING", "BUSY", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "CLUSTERDOWN", "MOVED", "NOREPLICAS", "TRYAGAIN", "NOPROTO", "UNKILLABLE"}

// SafeRefusal returns what may be passed on of the answer to a command of a
// login. command is its first word.
func SafeRefusal(answer resp.Error, command string) resp.Error {
	for _, text := range harmless {
		if strings.HasPrefix(string(answer), text) {
			return resp.Error(text)
		}
	}
	code := answer.Code()
	if text := withText[code]; text != "" && (code == "NOPERM" || strings.HasPrefix(string(answer), "ERR unknown command")) {
		return resp.Error(code + " " + text + "'" + command + "'")
	}
	for _, known := range codes {
		if code == known {
			return resp.Error(code + " (the server's text is withheld: it may quote the password)")
		}
	}
	return "ERR (the server's answer is withheld: it may quote the password)"
}

// Safe is SafeRefusal for an error of go-redis, which logs in by itself before
// the command. An error that is no answer of a server stays as it is.
func Safe(err error, command string) error {
	if answer, ok := errors.AsType[redis.Error](err); ok && !errors.Is(err, redis.Nil) {
		return SafeRefusal(resp.Error(answer.Error()), command)
	}
	return err
}

// refused is SafeRefusal for what reading the answer to a step returned. Other
// errors stay as they are.
func (s loginStep) refused(err error) error {
	if answer, ok := errors.AsType[resp.Error](err); ok {
		return SafeRefusal(answer, s.words[0])
	}
	return err
}
