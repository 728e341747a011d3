package storm

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"countersign.dev/authority/authoritytest"
)

// moment says where in a statement's life the line is cut.
type moment int

const (
	beforeItIsSent     moment = iota
	beforeItIsAnswered        // done and committed, yet nobody hears of it
)

// saboteur carries connections and has the server end one of them at a statement.
// Statements are counted by the Sync that ends each, over all connections.
type saboteur struct {
	t    *testing.T
	w    *authoritytest.World
	when moment
	at   int64
	seen atomic.Int64
	done atomic.Bool
}

// enough ends the sabotage, and reports whether there was any.
func (s *saboteur) enough() bool {
	s.seen.Store(s.at)
	return s.done.Load()
}

// Kinds of messages in PostgreSQL's protocol, version 3, without TLS.
const (
	syncMessage   = 'S'
	keyData       = 'K'
	readyForQuery = 'Z'
)

func (s *saboteur) carry(near, far net.Conn) {
	var pid atomic.Uint32
	var mute atomic.Bool // the answer that follows reaches nobody
	go func() {
		defer far.Close()
		read := bufio.NewReader(near)
		startup := 0 // it alone has no kind
		for kind := startup; ; kind = 1 {
			message, err := next(read, kind)
			if err != nil {
				return
			}
			if kind == 1 && message[0] == syncMessage && s.seen.Add(1) == s.at {
				s.done.Store(true)
				if s.when == beforeItIsSent {
					s.terminate(pid.Load())
				} else {
					mute.Store(true)
				}
			}
			if _, err := far.Write(message); err != nil {
				return
			}
		}
	}()
	read := bufio.NewReader(far)
	for {
		message, err := next(read, 1)
		if err != nil {
			return
		}
		if message[0] == keyData {
			pid.Store(binary.BigEndian.Uint32(message[5:]))
		}
		if mute.Load() {
			if message[0] == readyForQuery {
				s.terminate(pid.Load())
				return
			}
			continue
		}
		if _, err := near.Write(message); err != nil {
			return
		}
	}
}

// next reads one message: its kind in so many bytes, its length, and the rest.
func next(read *bufio.Reader, kind int) ([]byte, error) {
	const length = 4
	head := make([]byte, kind+length)
	if _, err := io.ReadFull(read, head); err != nil {
		return nil, err
	}
	message := make([]byte, kind+int(binary.BigEndian.Uint32(head[kind:])))
	copy(message, head)
	_, err := io.ReadFull(read, message[len(head):])
	return message, err
}

// terminate has the server end the connection and waits until it has.
func (s *saboteur) terminate(pid uint32) {
	const q = `SELECT pg_terminate_backend($1, 5000)`
	var ended bool
	if err := s.w.Owner.QueryRow(context.Background(), q, int32(pid)).Scan(&ended); err != nil || !ended {
		s.t.Errorf("end connection %d: %v, %v", pid, ended, err)
	}
}
