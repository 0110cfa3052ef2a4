// Command mattermost is the Mattermost server, Team Edition, built from its published module.
//
// A main package of our own is needed because the server's go.mod carries a replacement and exclusions,
// which Go honours only in the main module, so `go install ...@v6.7.2` is refused.
package main

import (
	"os"

	"github.com/mattermost/mattermost-server/v6/cmd/mattermost/commands"

	// These register themselves: the built-in slash commands, and sign-in with GitLab.
	_ "github.com/mattermost/mattermost-server/v6/app/slashcommands"
	_ "github.com/mattermost/mattermost-server/v6/model/gitlab"
)

func main() {
	if err := commands.Run(os.Args[1:]); err != nil {
		os.Exit(1)
	}
}
