//go:build unix

package fence_test

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/fence"
	"github.com/quorate/quorate/fence/internal/suite"
	"github.com/quorate/quorate/internal/testkit/process"
)

func TestMariaDB(t *testing.T) {
	t.Parallel()
	db := open(t, "mysql", startMariaDB(t)+"/fences")
	suite.SQL(t, suite.Database{
		DB: db, Dialect: fence.MySQL, Levels: levels,
		Waiting: func() bool {
			var n int
			err := db.QueryRow("SELECT variable_value FROM information_schema.global_status WHERE variable_name = " +
				"'Innodb_row_lock_current_waits'").Scan(&n)
			return err == nil && n == 1
		},
		Again: func(err error) bool {
			e := (*mysql.MySQLError)(nil)
			// A deadlock; the row has changed since the snapshot.
			return errors.As(err, &e) && (e.Number == 1213 || e.Number == 1020)
		},
	})
}

// startMariaDB starts a server that has a database fences, and returns what
// comes before its name in a data source. It needs no system tables, because
// everyone may do everything.
func startMariaDB(t *testing.T) (source string) {
	t.Helper()
	binary, err := exec.LookPath("mariadbd")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("MariaDB is not installed")
	}
	dir, err := os.MkdirTemp("", "quorate-my-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	cmd := exec.Command(binary, "--no-defaults", "--skip-grant-tables", "--skip-networking",
		"--datadir="+dir, "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "pid"), "--innodb-flush-log-at-trx-commit=0",
		"--innodb-buffer-pool-size=16M")
	cmd.Dir = dir
	if os.Getuid() == 0 { // which the server refuses
		nobody, err := user.Lookup("nobody")
		require.NoError(t, err)
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		require.NoError(t, err)
		require.NoError(t, os.Chown(dir, int(uid), -1))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	cmd.Stderr = log
	server, err := process.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Kill() })

	db := open(t, "mysql", "root@unix("+socket+")/")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := db.ExecContext(t.Context(), "CREATE DATABASE IF NOT EXISTS fences")
		if err == nil {
			return "root@unix(" + socket + ")"
		}
		if !server.Running() || time.Now().After(deadline) {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("MariaDB does not answer: %v: %s", err, said)
		}
	}
}
