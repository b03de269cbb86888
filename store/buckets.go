package store

import (
	"encoding/binary"

	"docket/store/ci"
)

// Records lie under growing keys, so that a commit touches the end of each
// bucket and not a thousand places in it. Identities are small index entries.
const (
	bucketMeta         = iota
	bucketReceipts     // seq -> receipt
	bucketBodies       // seq of the receipt -> headers and body, s2
	bucketIdentities   // identity -> seq of the receipt
	bucketDigests      // provider's time, digest of the body -> seq of the newest receipt with these bytes
	bucketRuns         // project, number -> run
	bucketStates       // state, project, number -> seq of the run
	bucketRefs         // project, kind of ref, ref, number -> move (see ref.go)
	bucketDeletions    // project, branch -> seq of the newest run when the branch was last deleted
	bucketForks        // project, commit -> the run that brought a fork's commit
	bucketSpecs        // digest -> spec
	bucketRequests     // scope, idempotency key -> digest and answer
	bucketScopes       // project, scope -> newest run's seq: the scheduler has to look at superseding
	bucketOutbox       // seq -> entry
	bucketDue          // time, seq -> nothing: pending entries; parked ones behind their lane's first
	bucketDead         // seq -> nothing: dead entries
	bucketLanes        // lane -> lane record (see lane.go)
	bucketHolds        // integration or target -> hold
	bucketDecisions    // seq -> decision
	bucketRunDecisions // run id, seq -> nothing
	bucketTokens       // digest of the value -> token
	bucketPins         // project -> repository
	bucketUsers        // name -> user, with the hash of the password
	bucketSessions     // digest of the token -> session
	bucketUserSessions // user, digest of the token -> nothing
	bucketLinks        // digest of the value -> login link
	bucketRunEntries   // project, number, seq -> nothing: the outbox entries of a run
	bucketKinds        // project, kind of ref, number -> seq of the run: tags and pull requests
	bucketSlots        // project, digest of the schedule -> the last slot that was settled
	bucketGroups       // concurrency group, who holds it or its turn -> run (see group.go)
	bucketChecks       // project, number of the run -> id of its check run at the provider
	bucketRecoveries   // integration -> how far its deliveries were compared
	bucketGaps         // seq -> a time in which docket was not there
	bucketHeads        // project, ref or pull request -> a head that no run is known of
	bucketLapses       // time, seq of the run -> run: held ones that are to lapse
	bucketCommits      // project, commit, context -> number of the run that ended there last
	bucketCount
)

var bucketNames = [bucketCount][]byte{
	[]byte("meta"), []byte("receipts"), []byte("bodies"), []byte("identities"), []byte("digests"),
	[]byte("runs"), []byte("states"), []byte("refs"), []byte("deletions"), []byte("forks"), []byte("specs"), []byte("requests"),
	[]byte("scopes"), []byte("outbox"), []byte("due"), []byte("dead"), []byte("lanes"), []byte("holds"),
	[]byte("decisions"), []byte("run_decisions"), []byte("tokens"), []byte("pins"),
	[]byte("users"), []byte("sessions"), []byte("user_sessions"), []byte("login_links"),
	[]byte("run_entries"), []byte("kinds"),
	[]byte("slots"), []byte("groups"), []byte("checks"), []byte("recoveries"), []byte("gaps"), []byte("heads"),
	[]byte("lapses"), []byte("commits"),
}

var (
	metaSchema   = []byte("schema")
	metaInstance = []byte("instance")
	metaProbe    = []byte("probe")
)

func be64(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func fromBE64(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// stateBytes gives each state its letter in keys and record headers.
var stateBytes = map[ci.State]byte{
	ci.Preparing: 'p', ci.Held: 'h', ci.Queued: 'q', ci.Running: 'r',
	ci.Succeeded: 'S', ci.Failed: 'F', ci.Cancelled: 'C', ci.Superseded: 'U', ci.Interrupted: 'I',
}

func stateOf(b byte) ci.State {
	for s, c := range stateBytes {
		if c == b {
			return s
		}
	}
	return ""
}

func projectPrefix(project string) []byte { return append([]byte(project), 0) }

func runKey(project string, number uint64) []byte {
	k := make([]byte, 0, len(project)+9)
	k = append(k, project...)
	k = append(k, 0)
	return binary.BigEndian.AppendUint64(k, number)
}

// splitRunKey is runKey's inverse.
func splitRunKey(k []byte) (project string, number uint64, ok bool) {
	if len(k) < 10 || k[len(k)-9] != 0 {
		return "", 0, false
	}
	return string(k[:len(k)-9]), binary.BigEndian.Uint64(k[len(k)-8:]), true
}

func runKeyOf(id string) ([]byte, error) {
	project, number, err := ci.ParseRunID(id)
	if err != nil {
		return nil, err
	}
	return runKey(project, number), nil
}

func stateKey(state ci.State, project string, number uint64) []byte {
	k := make([]byte, 0, len(project)+10)
	k = append(k, stateBytes[state])
	k = append(k, project...)
	k = append(k, 0)
	return binary.BigEndian.AppendUint64(k, number)
}

// after returns the smallest key that is greater than every key with the prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}
