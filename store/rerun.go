package store

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"docket/store/ci"
)

// byDelivery is who decides where a signed delivery asks for it.
var byDelivery = ci.By{Kind: ci.ByServer, Name: "delivery"}

// repeat makes the runs that a provider asks to have repeated, as Rerun does.
// why says what keeps a run from being repeated, "" for nothing.
func (t *tx) repeat(list []ci.Rerun) (runs []ci.Run, why string, err error) {
	var whys []string
	for _, rr := range list {
		ids, why, err := t.toRepeat(rr)
		if err != nil {
			return nil, "", err
		}
		if why != "" {
			whys = append(whys, why)
		}
		for _, id := range ids {
			r, err := t.repeatOne(rr, id)
			switch ci.CodeOf(err) {
			case "":
				runs = append(runs, r)
			case ci.CodeConflict, ci.CodeNotFound: // retention may have taken it
				whys = append(whys, ci.MessageOf(err))
			default:
				return nil, "", err
			}
		}
	}
	return runs, strings.Join(whys, "; "), nil
}

// toRepeat finds the runs that a provider asks for. Only those of the
// delivery's own repository and commit are.
func (t *tx) toRepeat(rr ci.Rerun) (ids []string, why string, err error) {
	if rr.Run != "" {
		why, err = t.mayRepeat(rr)
		if why == "" {
			ids = []string{rr.Run}
		}
		return ids, why, err
	}
	for _, project := range rr.Projects {
		list, err := t.newestOf(project, rr.Commit)
		if err != nil {
			return nil, "", err
		}
		ids = append(ids, list...)
	}
	if len(ids) == 0 {
		why = "no run of commit " + rr.Commit + " is on record, so there is nothing to run again"
	}
	return ids, why, nil
}

// mayRepeat says why a run is not one that a provider may have repeated.
func (t *tx) mayRepeat(rr ci.Rerun) (why string, err error) {
	r, err := t.run(rr.Run)
	switch {
	case ci.CodeOf(err) == ci.CodeNotFound:
		return "run " + rr.Run + " is not on record any more, so it cannot be run again", nil
	case err != nil:
		return "", err
	case !slices.Contains(rr.Projects, r.Project) || r.Internal.Integration != rr.Integration:
		return "run " + rr.Run + " is not one of this repository", nil
	case r.Source.Commit != rr.Commit:
		return "run " + rr.Run + " is of another commit than the check's " + rr.Commit, nil
	}
	return "", nil
}

func (t *tx) repeatOne(rr ci.Rerun, id string) (ci.Run, error) {
	n, err := t.rerunOf(id, rr.Cause)
	if err != nil {
		return ci.Run{}, err
	}
	r, err := t.createRun(n)
	if err != nil {
		return r, err
	}
	reason := "rerun of " + id + ", asked for at the provider"
	if rr.Cause.Actor != "" {
		reason += " by " + rr.Cause.Actor
	}
	return r, t.decide(ci.Decision{
		Kind: ci.DecisionRerun, Run: r.ID, OtherRun: id, Receipt: rr.Cause.Receipt, Project: r.Project, By: byDelivery, Reason: reason,
	})
}

// newestOf returns, for each context of a commit, the project's newest run: one
// that has not ended, else the one that ended last.
func (t *tx) newestOf(project, commit string) (ids []string, err error) {
	newest := map[string]uint64{}
	prefix := append(append(projectPrefix(project), commit...), 0)
	c := t.bucket(bucketCommits).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		newest[string(k[len(prefix):])] = fromBE64(v)
	}
	for _, state := range ci.States {
		if state.Final() {
			continue
		}
		prefix := append([]byte{stateBytes[state]}, projectPrefix(project)...)
		c := t.bucket(bucketStates).Cursor()
		for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			r, err := decodeRun(k[1:], t.get(bucketRuns, k[1:]))
			if err != nil {
				return nil, err
			}
			if r.Source.Commit == commit && r.Number > newest[r.Internal.Context] {
				newest[r.Internal.Context] = r.Number
			}
		}
	}
	for _, context := range slices.Sorted(maps.Keys(newest)) {
		ids = append(ids, ci.RunID(project, newest[context]))
	}
	return ids, nil
}
