package main

// initConfig is the docket.yaml that init writes. It works as it stands,
// except that its repository is nobody's.
const initConfig = `# docket's configuration. Check it after each change: docket check -c docket.yaml
# Relative paths begin at this file's directory. Secrets are {file: PATH} or
# {env: NAME}, never written here. A running server reads this file again on SIGHUP.

data_dir: ./data

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
  - name: github # webhooks go to /hooks/github
    provider: github
    webhook_secrets:
      - {file: github.secret} # the secret of the webhook's settings page
    # A token that may write commit statuses; without it docket tells GitHub nothing.
    # token: {file: github.token}

projects:
  - name: hello
    integration: github
    repository: acme/hello # CHANGE THIS to your repository, as OWNER/NAME
    # Where the code comes from; https://github.com/OWNER/NAME.git if left out.
    # clone_url: git@github.com:acme/hello.git
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
