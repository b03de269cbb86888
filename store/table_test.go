package store_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"docket/store"
)

// Ensure that a table among others that share its bucket, as neighbours or
// interleaved with it, holds what is put into it and nothing else, and that a
// cursor finds its way in it as in a bucket of its own.
func TestTable_KeepsToItself(t *testing.T) {
	path := mustFile(t, 0)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"receipts", "bodies", "outbox", "runs", "run_entries", "refs", "states", "due", "lanes", "tokens"}
	surgery(t, path, func(tx *bolt.Tx) error {
		want := map[string]map[string]string{}
		for _, n := range names {
			want[n] = map[string]string{}
		}
		for i := range 4000 {
			name, k := names[r.IntN(len(names))], tableKey(r)
			if table := store.TableOf(tx, name); r.IntN(3) > 0 {
				mustNil(t, table.Put([]byte(k), fmt.Append(nil, i)))
				want[name][k] = fmt.Sprint(i)
			} else {
				mustNil(t, table.Delete([]byte(k)))
				delete(want[name], k)
			}
		}
		for _, n := range names {
			checkTable(t, store.TableOf(tx, n), want[n], r)
		}
		for k := range want["runs"] { // an empty one among full ones
			mustNil(t, store.TableOf(tx, "runs").Delete([]byte(k)))
		}
		checkTable(t, store.TableOf(tx, "runs"), nil, r)
		for _, n := range names {
			for k := range want[n] { // the file is to be whole again
				mustNil(t, store.TableOf(tx, n).Delete([]byte(k)))
			}
		}
		return nil
	})
	broken, err := store.VerifyFile(t.Context(), path)
	if err != nil || len(broken) > 0 {
		t.Fatalf("%q, %v", broken, err)
	}
}

// tableKey draws a key as records have them: no key begins another.
func tableKey(r *rand.Rand) string {
	return string(be(uint64(r.IntN(600)) * []uint64{1, 1 << 40, 0xff << 50}[r.IntN(3)]))
}

func checkTable(t *testing.T, table *store.Table, want map[string]string, r *rand.Rand) {
	t.Helper()
	keys := slices.Sorted(maps.Keys(want))
	at := func(i int) string {
		if i < 0 || i >= len(keys) {
			return "nothing"
		}
		return fmt.Sprintf("%x=%s", keys[i], want[keys[i]])
	}
	same := func(what string, i int, k, v []byte) {
		t.Helper()
		got := "nothing"
		if k != nil {
			got = fmt.Sprintf("%x=%s", k, v)
		}
		if got != at(i) {
			t.Fatalf("%s: %s, want %s", what, got, at(i))
		}
	}
	i := 0
	mustNil(t, table.ForEach(func(k, v []byte) error { same("each", i, k, v); i++; return nil }))
	if i != len(keys) {
		t.Fatalf("%d keys, want %d", i, len(keys))
	}
	c := table.Cursor()
	i = len(keys) - 1
	k, v := c.Last()
	for ; i >= 0; i-- {
		same("backwards", i, k, v)
		k, v = c.Prev()
	}
	same("before the first", -1, k, v)
	for range 300 {
		key := []byte(tableKey(r))
		i, found := slices.BinarySearch(keys, string(key))
		k, v := c.Seek(key)
		same("seek", i, k, v)
		if k != nil {
			k, v = c.Next()
			same("after a seek", i+1, k, v)
		}
		if k, v = c.Before(key); k != nil {
			same("before", i-1, k, v)
			k, v = c.Prev()
			same("before that", i-2, k, v)
		} else {
			same("before", i-1, k, v)
		}
		if got := table.Get(key); (got != nil) != found || found && !bytes.Equal(got, []byte(want[string(key)])) {
			t.Fatalf("get %x: %q", key, got)
		}
	}
}

// Ensure that each table has a place that is no other's.
func TestLayout_GivesEachTableAPlace(t *testing.T) {
	if list := store.Misplaced(); len(list) > 0 {
		t.Fatalf("layout.go gives no place of their own to %q", list)
	}
}
