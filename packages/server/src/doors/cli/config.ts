import { Command } from 'commander'
import { OPTIONS } from '../options/table.js'
import { addOptionFlags, exposedSecrets, readNamedSources, readSources } from './option-flags.js'
import type { Terminal } from './terminal.js'

/** These take the flags of the server. */
const WITH_OPTIONS: readonly string[] = ['check', 'explain', 'print']

/** Adds the flags of the server to the command that is about to run: a server that runs should not keep three sets. */
export function addFlagsOfOptions(command: Command): void {
  if (command.parent?.name() !== 'config' || !WITH_OPTIONS.includes(command.name())) return
  const own = command.createHelp().visibleOptions(command)
  addOptionFlags(command, OPTIONS)
  command.configureHelp({ ...command.configureHelp(), visibleOptions: () => own })
  command.addHelpText('after', '\nIt takes the options of the server too: webmq-server --help-all')
}

/** The commands of `config`. Each is loaded when it runs. */
export function configCommands(terminal: Terminal, exit: (code: number) => void): readonly Command[] {
  const print = new Command('print')
    .description('Print the options that result from flags, environment and config file, without secrets.')
    .action(async (_options: unknown, command: Command) => {
      const { configPrint } = await import('./config-check.js')
      configPrint(readSources(command, OPTIONS, terminal.env), terminal)
    })

  const check = new Command('check')
    .description('Check the options of flags, environment and config file, and print each with its source.')
    .option('--json', 'Print JSON.')
    .option('--strict', 'Warnings fail too.')
    .action(async (flags: { json?: true; strict?: true }, command: Command) => {
      const { configCheck } = await import('./config-check.js')
      const read = () => readNamedSources(command, OPTIONS, terminal.env)
      exit(await configCheck(read, flags, terminal, () => exposedSecrets(command, OPTIONS, terminal.env)))
    })

  const explain = new Command('explain')
    .description(
      'Print which rules of history, retain, meta, overflow and urgent hold for a key, and where each comes from.',
    )
    .argument('<key>', 'A key, such as chat.42.message.')
    .option('--json', 'Print JSON.')
    .action(async (key: string, { json = false }: { json?: boolean }, command: Command) => {
      const { configExplain } = await import('./config-check.js')
      configExplain(key, readNamedSources(command, OPTIONS, terminal.env), json, terminal)
    })

  const init = new Command('init')
    .description('Write a config file with comments. It never replaces a file.')
    .argument('[file]', 'Name of the file; - prints it.', 'webmq.json')
    .option('--all', 'Every option, not only those that most need.')
    .action(async (file: string, { all = false }: { all?: boolean }) => {
      const { configInit } = await import('./config-init.js')
      configInit(file, all, terminal)
    })

  const schema = new Command('schema')
    .description('Print the JSON Schema of the config file, for editors.')
    .action(async () => {
      const { configSchema } = await import('./config-schema.js')
      terminal.stdout.write(`${JSON.stringify(configSchema(), null, 2)}\n`)
    })
  return [init, check, explain, print, schema]
}
