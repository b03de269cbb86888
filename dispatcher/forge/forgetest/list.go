package forgetest

import (
	"net/http"
)

type obj = map[string]any

func (g *GitHub) listBranches(r *http.Request, _ caller, repo *repository) answer {
	return listNamed(r, repo.branches)
}

func (g *GitHub) listTags(r *http.Request, _ caller, repo *repository) answer {
	return listNamed(r, repo.tags)
}

func listNamed(r *http.Request, all []named) answer {
	part, next := page(r, all)
	list := []obj{}
	for _, n := range part {
		list = append(list, obj{"name": n.name, "commit": obj{"sha": n.commit}})
	}
	return answer{http.StatusOK, list, next}
}

func (g *GitHub) listPulls(r *http.Request, _ caller, repo *repository) answer {
	part, next := page(r, repo.pulls)
	list := []obj{}
	for _, p := range part {
		list = append(list, repo.showPull(p))
	}
	return answer{http.StatusOK, list, next}
}

func (r *repository) showPull(p Pull) obj {
	own := obj{"id": r.id, "full_name": r.name}
	var head any = own
	switch {
	case p.HeadRepository != "" && p.HeadID != 0:
		head = obj{"id": p.HeadID, "full_name": p.HeadRepository}
	case p.HeadRepository != "":
		head = nil
	}
	labels := []obj{}
	for _, l := range p.Labels {
		labels = append(labels, obj{"name": l})
	}
	return obj{
		"number": p.Number, "title": p.Title, "state": "open", "draft": p.Draft, "labels": labels,
		"user": obj{"login": p.Author},
		"base": obj{"ref": p.Base, "repo": own},
		"head": obj{"ref": p.Head, "sha": p.Commit, "repo": head},
	}
}
