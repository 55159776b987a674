import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Command, CommanderError, type OptionValues } from 'commander'
import { EXIT, RunError, UsageError } from './exit-codes.js'
import { describeMachine } from './measure/machine.js'
import { addCommonOptions, type CommonOptions } from './options.js'
import { createProgress, type ProgressOutput } from './progress.js'
import { runCompare } from './report/compare-command.js'
import { painted } from './report/paint.js'
import { commandLine, headText, resultText } from './report/report.js'
import { FILES, writeOutput } from './report/write-output.js'
import type { Scenario, ScenarioRun } from './scenario.js'
import { deploymentScenarios, scenarios } from './scenarios/index.js'

/** Streams and signal of the command line; outside of tests the process's own. */
export interface CliEnvironment {
  readonly stdout: ProgressOutput
  readonly stderr: ProgressOutput
  /** Aborted by SIGINT or SIGTERM. */
  readonly signal: AbortSignal
  /** For `NO_COLOR` and `TERM`. */
  readonly env: NodeJS.ProcessEnv
}

/** Runs one command line and returns the exit code. Writes the result to `stdout`, everything else to `stderr`. */
export async function runCli(args: readonly string[], environment: CliEnvironment): Promise<number> {
  const { stderr, signal } = environment
  try {
    return await run(args, environment)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (error instanceof UsageError) {
      stderr.write(`error: ${error.message}\n`)
      return EXIT.usage
    }
    if (signal.aborted) {
      stderr.write('Interrupted: no result.\n')
      return EXIT.interrupted
    }
    const text =
      error instanceof RunError
        ? error.message
        : error instanceof Error
          ? (error.stack ?? error.message)
          : String(error)
    stderr.write(`error: ${text}\n`)
    return EXIT.runtime
  }
}

async function run(args: readonly string[], { stdout, stderr, signal, env }: CliEnvironment): Promise<number> {
  if (args[0] === 'compare') return runCompare(args.slice(1), stdout, stderr)
  const { scenario, options, planned } = planRun(args, { stdout, stderr })
  const outputs = outputsOf(options)
  for (const { flag, file } of outputs) if (file !== '-') await requireDirectory(flag, file)

  // With `--json -` and the like, standard output holds only the file.
  const report = outputs.some(({ file }) => file === '-') ? stderr : stdout
  const machine = describeMachine()
  const write = (text: string) => report.write(painted(text, report, env))
  write(`${headText([scenario.name, planned.title ?? ''].join(''), planned.heading, machine)}\n`)
  const progress = createProgress(stderr, options.progress)
  for (const note of planned.notes) progress.note(note)

  const width = report.columns
  const outcome = await planned.run({ progress, signal, ...(width === undefined ? {} : { width }) })
  const { assertions } = outcome
  const typed = commandLine(args)
  write(resultText(outcome, assertions, typed))
  const record = {
    command: typed,
    machine,
    scenario: scenario.name,
    config: planned.config,
    ...outcome.json,
    assertions,
  }
  for (const { flag, file, textOf } of outputs) writeOutput(flag, textOf(record), file, stdout)
  if (signal.aborted) {
    stderr.write('Interrupted: a partial result.\n')
    return EXIT.interrupted
  }
  return assertions.every(({ isMet }) => isMet) ? (outcome.exitCode ?? EXIT.ok) : EXIT.assertion
}

export interface PlannedRun {
  readonly scenario: Scenario
  readonly options: CommonOptions & OptionValues
  readonly planned: ScenarioRun
}

/**
 * Reads and checks a command line. Starts nothing.
 * @throws {CommanderError} or {UsageError} for one that cannot be run.
 */
export function planRun(args: readonly string[], output: Pick<CliEnvironment, 'stdout' | 'stderr'>): PlannedRun {
  const { scenario, all } = scenarioOf(args)
  const command = createCommand(scenario, all, output.stdout, output.stderr).parse(args, { from: 'user' })
  const options = command.opts<CommonOptions & OptionValues>()
  return { scenario, options, planned: scenario.prepare(options) }
}

/** The requested files. @throws {UsageError} when two of them are standard output. */
function outputsOf(options: CommonOptions) {
  const outputs = (Object.keys(FILES) as (keyof typeof FILES)[]).flatMap((name) => {
    const file = options[name]
    return file === undefined ? [] : [{ flag: `--${name}`, file, textOf: FILES[name] }]
  })
  if (outputs.filter(({ file }) => file === '-').length > 1) {
    throw new UsageError('only one of --json, --csv, --html and --svg can go to standard output')
  }
  return outputs
}

function createCommand(
  scenario: Scenario,
  all: readonly Scenario[],
  stdout: ProgressOutput,
  stderr: ProgressOutput,
): Command {
  const command = new Command('benchmark.js')
    .description(`Measures WebMQ. Scenario '${scenario.name}': ${scenario.summary}.`)
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .allowExcessArguments(false)
  const names = all.map(({ name }) => name)
  addCommonOptions(command, names, names[0] ?? '')
  scenario.addOptions(command)
  const isDefault = scenario === all[0]
  const examples = scenario.examples.map(([flags, shows]) => {
    const line = ['node benchmark.js', isDefault ? '' : `--scenario ${scenario.name}`, flags].filter(
      (part) => part !== '',
    )
    return `  # ${shows}\n  ${line.join(' ')}`
  })
  command.addHelpText(
    'after',
    `
Examples:
${examples.join('\n')}

Scenarios, each with its own --help:
${summaries(scenarios)}

Scenarios of a server that runs already, with --url:
${summaries(deploymentScenarios)}

${scenario.assertHelp}

Two results are compared with 'node benchmark.js compare'. See its --help.

Exit codes: 0 ok, 1 the run failed, 2 wrong usage, 3 an assertion does not hold, 4 publishes failed,
130 interrupted: the files have what was measured until then.`,
  )
  return command
}

function summaries(all: readonly Scenario[]): string {
  const width = Math.max(...[...scenarios, ...deploymentScenarios].map(({ name }) => name.length))
  return all.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`).join('\n')
}

/** Finds the scenario before parsing, because it decides which flags exist. Parsing reports errors. */
function scenarioOf(args: readonly string[]): { readonly scenario: Scenario; readonly all: readonly Scenario[] } {
  const all = args.some((arg) => arg === '--url' || arg.startsWith('--url=')) ? deploymentScenarios : scenarios
  const place = args.findIndex((arg) => arg === '--scenario' || arg.startsWith('--scenario='))
  const name = args[place]?.includes('=') === true ? args[place].slice('--scenario='.length) : args[place + 1]
  const [first] = all
  const scenario = (place === -1 ? undefined : all.find((each) => each.name === name)) ?? first
  if (scenario === undefined) throw new Error('there is no scenario')
  return { scenario, all }
}

/** Fails before the run instead of after it. */
async function requireDirectory(flag: string, file: string): Promise<void> {
  const directory = dirname(resolve(file))
  const found = await stat(directory).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new UsageError(`${flag} ${file}: there is no directory ${directory}`)
}
