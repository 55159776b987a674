import { Argument, Command } from 'commander'
import { SHELLS, type Shell } from './completion/shells.js'
import type { Terminal } from './terminal.js'

const EXAMPLES = `Examples:
  source <(webmq-server completion bash)                                  in ~/.bashrc
  source <(webmq-server completion zsh)                                   in ~/.zshrc, after compinit
  webmq-server completion fish > ~/.config/fish/completions/webmq-server.fish
`

/** @param root The whole program: the script has its commands and flags. */
export function completionCommand(terminal: Terminal, root: () => Command): Command {
  return new Command('completion')
    .description('Print the completions for a shell.')
    .addHelpText('before', EXAMPLES)
    .addArgument(new Argument('<shell>', 'The shell.').choices(SHELLS))
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion/script.js')
      terminal.stdout.write(completionScript(shell, root()))
    })
}
