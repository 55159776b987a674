import { writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Command, CommanderError, type OptionValues } from 'commander'
import { type Assertion, checkAssertions, parseAssertion } from './assertions.js'
import { EXIT, RunError, UsageError } from './exit-codes.js'
import { describeMachine } from './machine.js'
import { addCommonOptions, type CommonOptions } from './options.js'
import { createProgress, type ProgressOutput } from './progress.js'
import { commandLine, headText, type RunRecord, resultText } from './report/report.js'
import { defaultScenario, scenarios } from './scenarios/index.js'
import type { Scenario, ScenarioRun } from './scenarios/scenario.js'

/** What the command line works with; the process's own streams outside of tests. */
export interface CliEnvironment {
  readonly stdout: ProgressOutput
  readonly stderr: ProgressOutput
  /** Aborted by SIGINT or SIGTERM. */
  readonly signal: AbortSignal
}

/** Runs one command line and says what to exit with. Writes the result to `stdout`, everything else to `stderr`. */
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

async function run(args: readonly string[], { stdout, stderr, signal }: CliEnvironment): Promise<number> {
  const scenario = scenarioOf(args)
  const command = createCommand(scenario, stdout, stderr).parse(args, { from: 'user' })
  const options = command.opts<CommonOptions & OptionValues>()
  const assertions = options.assert.map((text): Assertion => parseAssertion(text, scenario.metrics))
  const planned: ScenarioRun = scenario.prepare(options)
  if (options.json !== undefined && options.json !== '-') await requireDirectory(options.json)

  // With `--json -` standard output is the JSON alone.
  const report = options.json === '-' ? stderr : stdout
  const machine = describeMachine()
  report.write(`${headText(scenario.name, planned.heading, machine)}\n`)
  const progress = createProgress(stderr, options.progress)
  for (const note of planned.notes) progress.note(note)

  const outcome = await planned.run({ progress, signal })
  const checked = checkAssertions(assertions, outcome.metrics)
  const typed = commandLine(args)
  report.write(resultText(outcome, checked, typed))
  const { results, ...sections } = outcome.json
  const record: RunRecord = {
    command: typed,
    machine,
    scenario: scenario.name,
    config: planned.config,
    results,
    ...sections,
    assertions: checked,
  }
  if (options.json !== undefined) writeRecord(record, options.json, stdout)
  return checked.every(({ isMet }) => isMet) ? EXIT.ok : EXIT.assertion
}

function createCommand(scenario: Scenario, stdout: ProgressOutput, stderr: ProgressOutput): Command {
  const command = new Command('benchmark.js')
    .description(`Measures WebMQ. Scenario '${scenario.name}': ${scenario.summary}.`)
    .exitOverride()
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .allowExcessArguments(false)
  const names = scenarios.map(({ name }) => name)
  addCommonOptions(command, names, defaultScenario.name)
  scenario.addOptions(command)
  const isDefault = scenario === defaultScenario
  const examples = scenario.examples.map(([flags, shows]) => {
    const line = ['node benchmark.js', isDefault ? '' : `--scenario ${scenario.name}`, flags].filter(
      (part) => part !== '',
    )
    return `  # ${shows}\n  ${line.join(' ')}`
  })
  const metrics = Object.entries(scenario.metrics).map(([name, kind]) => `${name} (${kind})`)
  command.addHelpText(
    'after',
    `
Examples:
${examples.join('\n')}

Metrics for --assert (with =, !=, <, <=, >, >=; units us ms s, %, B KB MB GB KiB MiB GiB):
  ${metrics.join(', ')}

Exit codes: 0 ok, 1 the run failed, 2 wrong usage, 3 an assertion does not hold, 130 interrupted.`,
  )
  return command
}

/** Which scenario's flags are to be understood: looked up before the flags are, and complained about only then. */
function scenarioOf(args: readonly string[]): Scenario {
  const place = args.findIndex((arg) => arg === '--scenario' || arg.startsWith('--scenario='))
  const name = args[place]?.includes('=') === true ? args[place].slice('--scenario='.length) : args[place + 1]
  return (place === -1 ? undefined : scenarios.find((scenario) => scenario.name === name)) ?? defaultScenario
}

/** Before the run, not after it. */
async function requireDirectory(file: string): Promise<void> {
  const directory = dirname(resolve(file))
  const found = await stat(directory).catch(() => undefined)
  if (found?.isDirectory() !== true) throw new UsageError(`--json ${file}: there is no directory ${directory}`)
}

function writeRecord(record: RunRecord, file: string, stdout: ProgressOutput): void {
  const json = `${JSON.stringify(record, null, 2)}\n`
  if (file === '-') {
    stdout.write(json)
    return
  }
  try {
    writeFileSync(file, json)
  } catch (cause) {
    throw new RunError(
      `--json ${file} could not be written: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
}
