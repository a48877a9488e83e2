package redistest

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"
)

// SetDisk has each write to the disk that the server waits for take that much
// longer, from the next one on. It needs [WithDisk].
func (s *Server) SetDisk(delay time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cfg.ownDisk {
		return fmt.Errorf("redistest: disk of %s: the server was started without WithDisk", s.Addr())
	}
	if s.closed {
		return ErrClosed
	}
	return s.host.write(delayAt, uint64(delay))
}

// CutPower ends the server as a power cut ends its machine: it is killed, and
// what of its append-only file was not on the disk is gone. It says how much
// that was. It needs [WithDisk].
func (s *Server) CutPower() (gone int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cfg.ownDisk {
		return 0, fmt.Errorf("redistest: disk of %s: the server was started without WithDisk", s.Addr())
	}
	if err := s.kill(); err != nil {
		return 0, err
	}
	err = s.host.logs(func(path string, size int64) error {
		var synced int64 // none of it, if the server never asked
		text, err := os.ReadFile(s.host.syncedFile(path))
		if err == nil && len(text) == 8 {
			synced = int64(binary.NativeEndian.Uint64(text))
		}
		if synced >= size {
			return nil
		}
		gone += size - synced
		return os.Truncate(path, synced)
	})
	return gone, err
}
