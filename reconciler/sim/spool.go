package sim

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/reeve-project/reeve/reconciler/port"
)

// maxSpool is the size of a ConfigMap that the API server accepts, in bytes.
const maxSpool = 1 << 20

// configMapKey is what the API server accepts as a key of a ConfigMap.
var configMapKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// Spool is a port.Spool in memory with the limits of a ConfigMap. It belongs to
// the cluster and so outlives any process of Reeve.
type Spool struct {
	world *World
	data  map[string][]byte
}

var _ port.Spool = (*Spool)(nil)

// NewSpool is an empty spool.
func NewSpool(w *World) *Spool { return &Spool{world: w, data: map[string][]byte{}} }

// Put stores a copy of the bytes. It fails when the key is none of a ConfigMap
// or when all bytes together are more than 1 MiB.
func (s *Spool) Put(ctx context.Context, key string, b []byte) error {
	return s.world.call(ctx, "spool", "Put", key, func() error {
		if !configMapKey.MatchString(key) {
			return port.Terminal(fmt.Errorf("spool: key %q: a ConfigMap takes letters, digits, '-', '_' and '.' only", key))
		}
		size := s.size() - len(s.data[key]) + len(b)
		if size > maxSpool {
			return fmt.Errorf("spool: key %s: %d bytes in all are more than the %d of a ConfigMap: push the ledger and delete what is pushed", key, size, maxSpool)
		}
		s.data[key] = slices.Clone(b)
		return nil
	})
}

func (s *Spool) size() int {
	n := 0
	for _, b := range s.data {
		n += len(b)
	}
	return n
}

// List are the keys, sorted.
func (s *Spool) List(ctx context.Context) ([]string, error) {
	var out []string
	err := s.world.call(ctx, "spool", "List", "", func() error {
		out = slices.Sorted(maps.Keys(s.data))
		return nil
	})
	return out, err
}

// Get is a copy of what is stored under the key, or port.ErrNotFound.
func (s *Spool) Get(ctx context.Context, key string) ([]byte, error) {
	var out []byte
	err := s.world.call(ctx, "spool", "Get", key, func() error {
		b, ok := s.data[key]
		if !ok {
			return fmt.Errorf("spool: key %s: %w", key, port.ErrNotFound)
		}
		out = slices.Clone(b)
		return nil
	})
	return out, err
}

// Delete removes the key.
func (s *Spool) Delete(ctx context.Context, key string) error {
	return s.world.call(ctx, "spool", "Delete", key, func() error {
		delete(s.data, key)
		return nil
	})
}
