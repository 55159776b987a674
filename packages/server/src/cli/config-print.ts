import { resolveOptions } from '../options/options.js'
import { warningsOf } from '../options/rules.js'
import type { ServerOptions } from '../options/server-options.js'
import { withoutSecrets } from '../options/without-secrets.js'
import { unknownVariables } from './environment.js'
import { type Terminal, warn } from './terminal.js'

/** Prints the resolved options as a config file. */
export function configPrint(options: ServerOptions, terminal: Terminal): void {
  const resolved = resolveOptions(options)
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved)]) warn(warning, terminal)
  terminal.stdout.write(`${JSON.stringify(withoutSecrets(resolved), null, 2)}\n`)
}
