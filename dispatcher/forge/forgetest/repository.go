package forgetest

import "net/http"

// SetMessage sets the message of a commit; those of others are empty.
func (g *GitHub) SetMessage(repository_, commit, message string) {
	g.t.Helper()
	g.change(repository_, func(r *repository) {
		if r.messages == nil {
			r.messages = map[string]string{}
		}
		r.messages[commit] = message
	})
}

func (g *GitHub) getRepository(_ *http.Request, _ caller, repo *repository) answer {
	return answer{status: http.StatusOK, body: obj{"id": repo.id, "full_name": repo.name, "private": repo.private}}
}

func (g *GitHub) getCommit(r *http.Request, _ caller, repo *repository) answer {
	commit := r.PathValue("commit")
	if !repo.has(commit) {
		return notFound
	}
	return answer{status: http.StatusOK, body: obj{"sha": commit, "message": repo.messages[commit]}}
}
