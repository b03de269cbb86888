package store_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"docket/store"
	"docket/store/ci"
	"docket/store/storetest"
)

// mustFullFile makes a store that has something of everything in it.
func mustFullFile(t *testing.T) string {
	t.Helper()
	c := newClock()
	path := filepath.Join(t.TempDir(), "docket.db")
	s := storetest.MustOpenAt(t, path, store.Options{Now: c.now})
	hook := withSpec(notifying("https://hooks.example.org"))
	one := mustPush(t, s, "d-1", 0, 1, hook)
	mustPush(t, s, "d-2", 1, 2, hook)
	mustAccept(t, s, pushed("d-3", "api", "patch", 1, 3, fromFork(5)))
	mustAccept(t, s, pushed("d-4", "web", "main", 0, 4))
	mustAccept(t, s, pushed("72d3162e-cc78-11e3-81ab-4c9367dc0958", "web", "main", 0, 0, ignored("[skip ci]")))
	mustRequest(t, s, manualRun("k-1", "main", 0))
	one = mustClaim(t, s, one.ID)
	dead := entriesOf(t, s, one.ID, ci.OutboxWebhook)[0]
	mustEnd(t, s, mustBegin(t, s, dead.ID), store.AttemptResult{State: ci.OutboxDead, Error: "410"})
	mustEnd(t, s, mustBegin(t, s, entriesOf(t, s, one.ID, ci.OutboxGitHubStatus)[0].ID), store.AttemptResult{State: ci.OutboxSent})
	mustNil(t, s.Hold(t.Context(), "github", c.now().Add(1<<40), "rate limit"))
	web := mustClaim(t, s, "web-1")
	mustFinish(t, s, web, ci.Succeeded)
	_, _, err := s.Rerun(t.Context(), action(web.ID, "k-2"))
	mustNil(t, err)
	_, err = s.CreateToken(t.Context(), "mona", ci.Operator)
	mustNil(t, err)
	mustNil(t, s.Close())
	return path
}

// cut is a file from below.
type cut struct {
	t  *testing.T
	tx *bolt.Tx
}

func (c cut) bucket(name string) *store.Table {
	b := store.TableOf(c.tx, name)
	if b == nil {
		c.t.Fatalf("no table %s", name)
	}
	return b
}

// find returns the first entry whose key or value holds a text.
func (c cut) find(bucket, text string) (k, v []byte) {
	c.t.Helper()
	err := c.bucket(bucket).ForEach(func(key, val []byte) error {
		if k == nil && (strings.Contains(string(key), text) || strings.Contains(string(val), text)) {
			k, v = bytes.Clone(key), append([]byte{}, val...)
		}
		return nil
	})
	if err != nil || k == nil {
		c.t.Fatalf("nothing in %s holds %q: %v", bucket, text, err)
	}
	return k, v
}

// nth returns a table's n-th entry, counted from 1.
func (c cut) nth(bucket string, n int) (k, v []byte) {
	c.t.Helper()
	cur := c.bucket(bucket).Cursor()
	for k, v = cur.First(); n > 1; n-- {
		k, v = cur.Next()
	}
	return bytes.Clone(k), bytes.Clone(v)
}

func (c cut) put(bucket string, k, v []byte) {
	c.t.Helper()
	mustNil(c.t, c.bucket(bucket).Put(k, v))
}

func (c cut) drop(bucket, text string) {
	c.t.Helper()
	k, _ := c.find(bucket, text)
	mustNil(c.t, c.bucket(bucket).Delete(k))
}

// change replaces an entry's value.
func (c cut) change(bucket, text string, fn func(v []byte) []byte) {
	c.t.Helper()
	k, v := c.find(bucket, text)
	c.put(bucket, k, fn(v))
}

// replace changes a piece of text in a value; both are equally long, so that
// the records' headers still hold.
func (c cut) replace(bucket, text, from, to string) {
	c.t.Helper()
	c.change(bucket, text, func(v []byte) []byte {
		if !bytes.Contains(v, []byte(from)) {
			c.t.Fatalf("%s: no %q in %q", bucket, from, v)
		}
		return bytes.Replace(v, []byte(from), []byte(to), 1)
	})
}

// move gives an entry another key.
func (c cut) move(bucket, text string, fn func(k []byte) []byte) {
	c.t.Helper()
	k, v := c.find(bucket, text)
	mustNil(c.t, c.bucket(bucket).Delete(k))
	c.put(bucket, fn(k), v)
}

func be(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func key(project string, n uint64) []byte { return append([]byte(project+"\x00"), be(n)...) }

// Ensure that the store which the table breaks is whole before.
func TestVerify_AWholeStoreIsWhole(t *testing.T) {
	broken, err := store.VerifyFile(t.Context(), mustFullFile(t))
	if err != nil || len(broken) != 0 {
		t.Fatalf("%q, %v", broken, err)
	}
}

// Ensure that each way to break the store is named: no check is vacuous.
func TestVerify_NamesWhatIsBroken(t *testing.T) {
	good := mustRead(t, mustFullFile(t))
	good = good[:lastUsed(good)*os.Getpagesize()]
	for what, tc := range map[string]struct {
		break_ func(c cut)
		says   string
	}{
		"a receipt that cannot be read": {func(c cut) { c.change("receipts", "d-1", func(v []byte) []byte { return v[:len(v)-3] }) }, "receipt record"},
		"a receipt whose id is not its parts": {func(c cut) {
			c.replace("receipts", `"id":"github/12345/d-1"`, `"id":"github/12345/d-1"`, `"id":"github/12345/d-9"`)
		}, "receipt github/12345/d-9: its parts"},
		"an accepted receipt without runs": {func(c cut) {
			c.change("receipts", "d-1", func(v []byte) []byte {
				n := binary.BigEndian.Uint16(v[1:])
				return append([]byte{v[0], 0, 0}, v[3+n:]...)
			})
		}, "receipt github/12345/d-1: accepted with 0 runs"},
		"a receipt that names a run which never was": {func(c cut) { c.replace("receipts", "d-4", "web-1", "web-9") }, "receipt github/12345/d-4: run web-9"},
		"a receipt that names another's run":         {func(c cut) { c.replace("receipts", "d-1", "api-1", "api-2") }, "receipt github/12345/d-1: run api-2 belongs to"},
		"a receipt without its identity":             {func(c cut) { c.drop("identities", "d-1") }, "receipt github/12345/d-1: its identity"},
		"a time-ordered identity lost":               {func(c cut) { c.drop("identities", "\x11\xe3\xcc\x78\x72") }, "72d3162e-cc78-11e3-81ab-4c9367dc0958: its identity"},
		"an identity that points nowhere":            {func(c cut) { c.put("identities", []byte("github\x0012345\x00\x00stray"), be(99)) }, "identity"},
		"an identity that points to another": {func(c cut) {
			k, _ := c.find("identities", "d-1")
			second, _ := c.nth("receipts", 2)
			c.put("identities", k, second)
		}, "points to receipt github/12345/d-2"},
		"a digest that points nowhere":        {func(c cut) { c.put("digests", bytes.Repeat([]byte{7}, 24), be(99)) }, "digest"},
		"a digest that points to other bytes": {func(c cut) { k, _ := c.find("digests", ""); c.put("digests", k, be(5)) }, "digest"},
		"a body that cannot be read":          {func(c cut) { k, _ := c.nth("bodies", 1); c.put("bodies", k, []byte("rubbish")) }, "receipt github/12345/d-1"},
		"another's body":                      {func(c cut) { k, _ := c.nth("bodies", 1); _, v := c.nth("bodies", 2); c.put("bodies", k, v) }, "receipt github/12345/d-1"},
		"a body that is nobody's":             {func(c cut) { _, v := c.nth("bodies", 1); c.put("bodies", be(99), v) }, "body 99"},
		"a run that cannot be read":           {func(c cut) { c.change("runs", "d-2", func(v []byte) []byte { return v[:20] }) }, "run"},
		"a run in no state":                   {func(c cut) { c.change("runs", "d-2", func(v []byte) []byte { v[8] = '?'; return v }) }, "run api-2: no such state"},
		"a run whose state changed alone":     {func(c cut) { c.change("runs", "d-2", func(v []byte) []byte { v[8] = 'r'; return v }) }, "run api-2: running, and the index"},
		"a run out of order":                  {func(c cut) { c.change("runs", "d-2", func(v []byte) []byte { copy(v, be(1)); return v }) }, "run api-2: created before"},
		"two runs of one order": {func(c cut) {
			k, v := c.find("runs", "d-4")
			_, first := c.nth("runs", 1)
			copy(v, first[:8])
			c.put("runs", k, v)
		}, "same order of creation"},
		"a final run that never finished": {func(c cut) {
			c.change("runs", "d-4", func(v []byte) []byte { return setField(t, v, 9, "finished_at", nil) })
		}, "run web-1: succeeded, finished at"},
		"a queued run that finished": {func(c cut) {
			c.change("runs", "d-2", func(v []byte) []byte { return setField(t, v, 9, "finished_at", "2026-01-01T00:00:00.000Z") })
		}, "run api-2: queued, finished at"},
		"a run without its spec":          {func(c cut) { mustNil(t, emptyBucket(c.bucket("specs"))) }, "no spec"},
		"a spec that changed":             {func(c cut) { c.replace("specs", "hooks.example.org", "make test", "rm -rf //") }, "spec"},
		"a spec that nobody has, changed": {func(c cut) { c.put("specs", bytes.Repeat([]byte{1}, 32), []byte(`{"version":1}`)) }, "spec 0101"},
		"a preparing run without a job": {func(c cut) {
			c.change("runs", `"resolve":true`, func(v []byte) []byte { return bytes.Replace(v, []byte(`"job":`), []byte(`"jab":`), 1) })
		}, "preparing, and nothing"},
		"a queued run without a commit": {func(c cut) {
			c.change("runs", "d-2", func(v []byte) []byte { return bytes.Replace(v, []byte(sha(2)), nil, 1) })
		}, "run api-2: queued without a commit"},
		"a run that its receipt does not name": {func(c cut) { c.replace("runs", "d-2", "12345/d-2", "12345/d-4") }, "run api-2: receipt github/12345/d-4 does not name it"},
		"a state that is missing":              {func(c cut) { c.drop("states", "qapi\x00"+string(be(2))) }, "run api-2: queued, and the index"},
		"a stray state":                        {func(c cut) { c.put("states", append([]byte("q"), key("api", 99)...), be(99)) }, "index of states"},
		"a second state of one run":            {func(c cut) { c.put("states", append([]byte("r"), key("api", 2)...), be(2)) }, "index of states"},
		"a state with another order":           {func(c cut) { k, _ := c.find("states", "qapi\x00"+string(be(2))); c.put("states", k, be(77)) }, "run api-2: queued, and the index"},
		"a ref that is missing":                {func(c cut) { c.drop("refs", "api\x00bmain\x00"+string(be(2))) }, "run api-2: not filed"},
		"a pull request's ref that is missing": {func(c cut) { c.drop("refs", "api\x00p") }, "run api-3: not filed"},
		"a head branch's ref that is missing":  {func(c cut) { c.drop("refs", "api\x00hpatch\x00") }, "run api-3: not filed"},
		"a ref of no run": {func(c cut) {
			_, v := c.find("refs", "api\x00bmain\x00")
			c.put("refs", append([]byte("api\x00bmain\x00"), be(99)...), v)
		}, "has no such run"},
		"a run under another's ref": {func(c cut) {
			_, v := c.find("refs", "api\x00bmain\x00"+string(be(2)))
			c.put("refs", append([]byte("api\x00bdev\x00"), be(2)...), v)
		}, "dev"},
		"a ref with another move": {func(c cut) {
			c.change("refs", "api\x00bmain\x00"+string(be(2)), func(v []byte) []byte { v[len(v)-1] ^= 1; return v })
		}, "another move"},
		"a ref with another scope": {func(c cut) {
			c.change("refs", "api\x00bmain\x00"+string(be(2)), func(v []byte) []byte { v[9] ^= 1; return v })
		}, "another move"},
		"a ref that tells no head any more": {func(c cut) {
			c.change("refs", "api\x00bmain\x00"+string(be(2)), func(v []byte) []byte { v[16] ^= 1; return v })
		}, "another move"},
		"a ref that is cut short": {func(c cut) {
			c.change("refs", "api\x00bmain\x00"+string(be(2)), func(v []byte) []byte { return v[:5] })
		}, "refs:"},
		"a fork's commit of no run":        {func(c cut) { c.put("forks", []byte("api\x00"+sha(9)), []byte("api-99")) }, "fork"},
		"a fork's commit of another's run": {func(c cut) { c.put("forks", []byte("api\x00"+sha(9)), []byte("api-1")) }, "fork"},
		"an entry that cannot be read":     {func(c cut) { c.change("outbox", "api-2", func(v []byte) []byte { return v[:9] }) }, "outbox"},
		"an entry in no state":             {func(c cut) { c.change("outbox", "api-2", func(v []byte) []byte { v[0] = '?'; return v }) }, "no such state"},
		"a pending entry that ended alone": {func(c cut) { c.change("outbox", "api-2", func(v []byte) []byte { v[0] = 's'; return v }) }, "sent, finished at"},
		"an entry under another's hold": {func(c cut) {
			c.change("outbox", "hooks.example.org", func(v []byte) []byte {
				return bytes.Replace(v, []byte("https://hooks.example.org"), []byte("https://hooks.example.com"), 1)
			})
		}, "hold"},
		"a due entry that is not listed": {func(c cut) { k, _ := firstKey(c.bucket("due")); mustNil(t, c.bucket("due").Delete(k)) }, "due:"},
		"a stray due entry":              {func(c cut) { c.put("due", append(be(1), be(99)...), nil) }, "due:"},
		"a due entry at another time": {func(c cut) {
			k, _ := firstKey(c.bucket("due"))
			mustNil(t, c.bucket("due").Delete(k))
			c.put("due", append(be(1), k[8:]...), nil)
		}, "due:"},
		"a dead one that is not listed": {func(c cut) { k, _ := firstKey(c.bucket("dead")); mustNil(t, c.bucket("dead").Delete(k)) }, "not on the list of the dead"},
		"a listed one that is not dead": {func(c cut) { c.put("dead", be(3), nil) }, "list of the dead"},
		"a lane that is missing":        {func(c cut) { c.drop("lanes", "github/acme/api@"+sha(2)) }, "lane"},
		"a lane that nobody uses": {func(c cut) {
			k, v := c.find("lanes", "github/acme/api@"+sha(2))
			_ = k
			c.put("lanes", []byte("stray"), v)
		}, "lane stray"},
		"a lane with one user too many": {func(c cut) { c.change("lanes", "github/acme/api@"+sha(2), func(v []byte) []byte { v[11]++; return v }) }, "users"},
		"a lane with one user too few":  {func(c cut) { c.change("lanes", "github/acme/api@"+sha(2), func(v []byte) []byte { v[11]--; return v }) }, "users"},
		"a lane without its queue": {func(c cut) {
			c.change("lanes", "github/acme/api@"+sha(2), func(v []byte) []byte { return v[:len(v)-8] })
		}, "its queue"},
		"a lane that is cut short": {func(c cut) { c.change("lanes", "github/acme/api@"+sha(2), func(v []byte) []byte { return v[:7] }) }, "cut short"},
		"a lane for which an older run speaks": {func(c cut) {
			c.change("lanes", "github/acme/api@"+sha(2), func(v []byte) []byte { copy(v, be(1)); return v })
		}, "is newer"},
		"a lane for which another run speaks": {func(c cut) { c.replace("lanes", "github/acme/api@"+sha(2), "api-2", "api-1") }, "speaks"},
		"a request of a run that never was":   {func(c cut) { c.replace("requests", "k-1", "api-4", "api-9") }, "request"},
		"a request that cannot be read":       {func(c cut) { c.change("requests", "k-1", func(v []byte) []byte { return v[:5] }) }, "request"},
		"a mark behind the first of its kind": {func(c cut) { c.put("meta", []byte("first receipt"), be(1<<20)) }, "says that there is none so early"},
		"a mark that is missing":              {func(c cut) { mustNil(t, c.bucket("meta").Delete([]byte("first entry"))) }, "says that there is none so early"},
		"a decision that cannot be read":      {func(c cut) { c.put("decisions", be(1), []byte("{")) }, "decision 1"},
		"a decision under no run":             {func(c cut) { c.drop("run_decisions", "web-2\x00") }, "not filed under run web-2"},
		"a decision under no other run":       {func(c cut) { c.drop("run_decisions", "web-1\x00") }, "not filed under run web-1"},
		"a filing of no decision":             {func(c cut) { c.put("run_decisions", append([]byte("api-1\x00"), be(99)...), nil) }, "run_decisions"},
		"a filing of another run's decision": {func(c cut) {
			_, v := c.find("decisions", "web-2")
			_ = v
			c.put("run_decisions", append([]byte("api-1\x00"), be(1)...), nil)
		}, "run_decisions"},
		"a scope that cannot be read": {func(c cut) { c.put("scopes", []byte("nonsense"), be(1)) }, "scope"},
		"a token in no role":          {func(c cut) { c.replace("tokens", "mona", "operator", "operatox") }, "token"},
		"a token's name twice":        {func(c cut) { _, v := c.find("tokens", "mona"); c.put("tokens", bytes.Repeat([]byte{1}, 32), v) }, "token"},
		"a pin that cannot be read":   {func(c cut) { c.put("pins", []byte("api"), []byte("{")) }, "pin of api"},
		"a hold that cannot be read":  {func(c cut) { c.put("holds", []byte("github"), []byte("{")) }, "hold of github"},
		"a key of no table": {func(c cut) {
			mustNil(t, c.tx.Bucket([]byte("index")).Put([]byte("\x00stray"), nil))
		}, `index: "\x00stray" belongs to no table`},
		"a record of no kind": {func(c cut) {
			mustNil(t, c.tx.Bucket([]byte("records")).Put(append(be(1), 0), nil))
		}, "belongs to no table"},
		"a sequence that would write over receipts":  {func(c cut) { mustNil(t, c.bucket("receipts").SetSequence(2)) }, "receipts: "},
		"a sequence that would write over decisions": {func(c cut) { mustNil(t, c.bucket("decisions").SetSequence(0)) }, "decisions: "},
		"a sequence that would write over entries":   {func(c cut) { mustNil(t, c.bucket("outbox").SetSequence(3)) }, "outbox: "},
		"a sequence that would repeat an order":      {func(c cut) { mustNil(t, c.bucket("runs").SetSequence(3)) }, "runs: "},
	} {
		t.Run(what, func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "docket.db")
			mustNil(t, os.WriteFile(bad, good, 0o600))
			surgery(t, bad, func(tx *bolt.Tx) error { tc.break_(cut{t, tx}); return nil })
			broken, err := store.VerifyFile(t.Context(), bad)
			mustNil(t, err)
			for _, line := range broken {
				if strings.Contains(line, tc.says) {
					return
				}
			}
			t.Fatalf("nothing says %q: %q", tc.says, broken)
		})
	}
}

func firstKey(b *store.Table) (k, v []byte) {
	k, v = b.Cursor().First()
	return bytes.Clone(k), bytes.Clone(v)
}

func emptyBucket(b *store.Table) error {
	for k, _ := firstKey(b); k != nil; k, _ = firstKey(b) {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// setField changes a field of the JSON behind a record's header.
func setField(t *testing.T, v []byte, header int, field string, to any) []byte {
	t.Helper()
	var m map[string]any
	mustNil(t, json.Unmarshal(v[header:], &m))
	m[field] = to
	b, err := json.Marshal(m)
	mustNil(t, err)
	return append(bytes.Clone(v[:header]), b...)
}

// Ensure that a store can be verified while others write to it, and that what
// they write is not taken for a fault.
func TestVerify_WhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	s := storetest.MustOpenAt(t, filepath.Join(dir, "docket.db"), store.Options{})
	acknowledged, stop := writing(t, s)
	defer stop()
	for range 5 {
		n := len(acknowledged())
		broken, err := s.Verify(t.Context())
		if err != nil || len(broken) != 0 {
			t.Fatalf("%q, %v", broken, err)
		}
		for len(acknowledged()) == n { // the writers go on in between
			mustNil(t, s.Probe(t.Context()))
		}
	}
	stop()
	files, err := os.ReadDir(dir)
	mustNil(t, err)
	for _, f := range files {
		if strings.HasPrefix(f.Name(), ".") {
			t.Errorf("left behind: %s", f.Name())
		}
	}
}

// Ensure that verifying a running store names a fault in it too.
func TestVerify_ARunningStore(t *testing.T) {
	path := dbPath(t)
	copyFile(t, mustFullFile(t), path)
	surgery(t, path, func(tx *bolt.Tx) error { cut{t, tx}.drop("identities", "d-1"); return nil })
	s, err := store.Open(path, store.Options{})
	mustNil(t, err)
	defer s.Close()
	broken, err := s.Verify(t.Context())
	if err != nil || len(broken) != 1 || !strings.Contains(broken[0], "its identity") {
		t.Fatalf("%q, %v", broken, err)
	}
}
