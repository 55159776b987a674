import { Command } from 'commander'
import { addOptionFlags, readSources } from '../../src/doors/cli/option-flags.js'
import type { ServerOptions } from '../../src/doors/options/server-options.js'
import { OPTIONS } from '../../src/doors/options/table.js'

/** The options of a command line of `webmq-server`, as a start reads them. */
export function givenOptions(args: readonly string[], env: NodeJS.ProcessEnv = {}): ServerOptions {
  const command = new Command()
  addOptionFlags(command, OPTIONS)
  return readSources(command.parse(args, { from: 'user' }), OPTIONS, env)
}
