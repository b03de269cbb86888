package main

import (
	"strings"

	"docket/store/ci"
)

// starter is what init says of one provider.
type starter struct {
	name        string // of the integration
	calls       string // what people call the provider
	integration string // its part of docket.yaml
	source      string // a project's part that says where the code comes from
	change      string // what has to be put in place of an example
	hook        string // the steps at the provider; %[1]s is the secret's file
}

// secretFile is where init puts the webhook secret.
func (s starter) secretFile() string { return s.name + ".secret" }

// starterOf returns what init says of a provider; ok is false for one that is
// not known.
func starterOf(provider string) (s starter, ok bool) {
	switch provider {
	case ci.ProviderGitHub:
		return starter{"github", "GitHub", githubIntegration, githubSource, "your repository in place of acme/hello", githubHook}, true
	case ci.ProviderGitea:
		return starter{"gitea", "Gitea", giteaIntegration, giteaSource, "your Gitea or Forgejo in place of gitea.example.org and your repository in place of acme/hello", giteaHook}, true
	}
	return starter{}, false
}

// initConfig is the docket.yaml that init writes. It works as it stands,
// except that its repository is nobody's.
func initConfig(s starter, system bool) string {
	data := "./data"
	if system {
		data = "/var/lib/docket"
	}
	return strings.NewReplacer("@data@", data, "@integration@\n", s.integration, "@source@\n", s.source, "@name@", s.name).Replace(initTemplate)
}

const githubIntegration = `  - name: github # webhooks go to /hooks/github
    provider: github
    webhook_secrets:
      - {file: github.secret} # the secret of the webhook's settings page
    # A token that may write commit statuses; without it docket tells GitHub nothing.
    # token: {file: github.token}
`

const githubSource = `    # Where the code comes from; https://github.com/OWNER/NAME.git if left out.
    # clone_url: git@github.com:acme/hello.git
`

const githubHook = `On GitHub, in the repository's Settings > Webhooks > Add webhook, paste:

      Payload URL   https://YOUR-HOST/hooks/github
      Content type  application/json
      Secret        the line in %[1]s
`

const giteaIntegration = `  - name: gitea # webhooks go to /hooks/gitea
    provider: gitea # and Forgejo
    api_url: https://gitea.example.org/api/v1/ # CHANGE THIS to your own
    webhook_secrets:
      - {file: gitea.secret} # the Secret of the webhook's settings page
    # A token with the scope write:repository; without it docket tells Gitea nothing.
    # token: {file: gitea.token}
`

const giteaSource = `    clone_url: https://gitea.example.org/acme/hello.git # CHANGE THIS too
`

const giteaHook = `On Gitea or Forgejo, in the repository's Settings > Webhooks > Add Webhook, paste:

      Target URL         https://YOUR-HOST/hooks/gitea
      POST Content Type  application/json
      Secret             the line in %[1]s
      Trigger On         Custom Events: Push, Delete, Pull Request, Pull Request Synchronized

    If YOUR-HOST is a private address, Gitea calls it only where ALLOWED_HOST_LIST under
    [webhook] in its app.ini names it.
`

const initTemplate = `# docket's configuration. Check it after each change: docket check -c docket.yaml
# Relative paths begin at this file's directory. Secrets are {file: PATH} or
# {env: NAME}, never written here. A running server reads this file again on SIGHUP.

data_dir: @data@

# The address under which people reach this server; used in links and statuses.
# public_url: https://ci.example.org

listen:
  # Everything: webhooks, API, page. Put a proxy with TLS before it.
  - address: 127.0.0.1:8080
  # What the internet may reach: webhooks and /healthz only.
  # - address: 0.0.0.0:9000
  #   serve: [hooks]

# The administrator's API token.
admin_token: {file: admin.token}

integrations:
@integration@

projects:
  - name: hello
    integration: @name@
    repository: acme/hello # CHANGE THIS to your repository, as OWNER/NAME
@source@
    default_branch: main
    on:
      push: {branches: ["**"]}
      pull_request: {branches: [main]}
    timeout: 30m
    # What a manual request may set; steps see it as $TARGET.
    # inputs:
    #   - {name: target, default: staging, options: [staging, production]}
    # env: {GOFLAGS: -mod=readonly}
    # secrets: {NPM_TOKEN: {file: npm.token}} # never given to a fork's run
    steps:
      - name: hello
        run: |
          echo "hello from $DOCKET_RUN at $DOCKET_COMMIT"
          ls
      # - {name: test, run: make test}
      # - {name: deploy, run: ./deploy.sh "$TARGET", deploy: true}
    # notify:
    #   - {webhook: https://hooks.example.org/ci, secret: {file: notify.secret}, events: [run.finished]}
    #   - {slack: {file: slack.url}, events: [run.failed]}
`
