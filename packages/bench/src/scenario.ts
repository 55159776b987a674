import type { Command, OptionValues } from 'commander'
import type { Progress } from './progress.js'

/** One kind of load, one file: its flags, its traffic, its figures. */
export interface Scenario {
  readonly name: string
  /** One line for `--help`. */
  readonly summary: string
  /** Command lines without `node benchmark.js`, each with what it shows. */
  readonly examples: readonly (readonly [flags: string, shows: string])[]
  /** Conditions for `--assert`, for `--help`. */
  readonly assertHelp: string
  addOptions(command: Command): void
  /**
   * Turns parsed flags, `--assert` among them, into a run that can be started. Starts nothing.
   * @throws {UsageError} for flags that cannot go together.
   */
  prepare(values: OptionValues): ScenarioRun
}

export interface ScenarioRun {
  /** Every setting that decides the result, defaults filled in. */
  readonly config: Readonly<Record<string, unknown>>
  /** What the user should know about the settings before they wait. */
  readonly notes: readonly string[]
  /** What stands behind the scenario's name in the first line of the report. */
  readonly title?: string
  /** The settings as the head of the report. */
  readonly heading: string
  /** Runs it once. When it settles, none of its processes and threads is left. */
  run(context: ScenarioContext): Promise<ScenarioOutcome>
}

export interface ScenarioContext {
  readonly progress: Progress
  /** Aborted when the user interrupts. */
  readonly signal: AbortSignal
  /** Characters per line of the report; absent where it is no terminal. */
  readonly width?: number
}

export interface ScenarioOutcome {
  /** Members of the JSON file beside `command`, `machine`, `scenario`, `config` and `assertions`. */
  readonly json: object
  readonly text: string
  /** The outcome of every `--assert`, in their order. */
  readonly assertions: readonly AssertionResult[]
  /** Of a run whose assertions hold; absent: 0. */
  readonly exitCode?: number
}

/** The outcome of an `--assert`. */
export interface AssertionResult {
  readonly text: string
  readonly isMet: boolean
  /** `null` when there was nothing to measure. */
  readonly actual: number | string | null
}
