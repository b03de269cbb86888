package main

import (
	"github.com/spf13/cobra"
)

func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Print a script that completes docket's commands and flags in your shell: bash,
zsh, fish or powershell. Load it from the shell's start-up file.`,
		Example: `  docket completion bash > /etc/bash_completion.d/docket
  docket completion zsh > "${fpath[1]}/_docket"
  docket completion fish > ~/.config/fish/completions/docket.fish`,
		ValidArgs:             shells,
		DisableFlagsInUseLine: true,
		Args:                  exactArgs("SHELL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usagef(cmd, "there is no completion for %q: use one of %s", args[0], joined(shells))
		},
	}
}
