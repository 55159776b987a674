import type { Command, OptionValues } from 'commander'
import type { Parts } from '../parts.js'
import type { ResultColumn, ResultRow, ResultSeries, RowVerdict } from '../results/result.js'
import type { RunProgress } from '../run-progress.js'
import type { TargetSettings } from '../targets/messages.js'
import type { TargetAbility, TargetChoice } from '../targets/target-table.js'
import type { Relay, RelayBrokerKind } from './relay.js'
import type { Subject, Trial } from './trial.js'
import type { TrialConfig, TrialDefaults } from './trial-options.js'
import type { TrialCase } from './trial-plan.js'

/** The specific part of a scenario that measures targets under conditions. `createTrialScenario` adds the rest. */
export interface TrialScenario<Config extends TrialConfig = TrialConfig> {
  readonly name: string
  readonly summary: string
  readonly examples: readonly (readonly [flags: string, shows: string])[]
  readonly abilities: readonly TargetAbility[]
  readonly defaults: TrialDefaults
  /** What is measured instead of `--target`, with flags of its own. */
  readonly subject?: TargetChoice
  /** Whether the measurement makes its connections without the load generator. */
  readonly hasOwnGenerator?: true
  /** Meaning of `--tiers`, if not connections. */
  readonly tiersHelp?: string
  readonly columns: readonly ResultColumn[]
  /** Columns of the fields that cases vary; with target, mode and connections they identify a row. */
  readonly caseColumns: readonly ResultColumn[]
  addOptions?(command: Command): void
  readConfig(common: TrialConfig, values: OptionValues): Config
  cases(config: Config): readonly TrialCase[]
  /** Whether a target is measured under a condition; absent: always. */
  isMeasured?(this: void, testCase: TrialCase, choice: TargetChoice): boolean
  notes(config: Config): readonly string[]
  /** One measurement. @throws {RunError} when it fails; the row then says why. */
  measure(context: TrialContext<Config>): Promise<Measured>
  /** Adds figures to the rows of medians that derive from several rows. */
  derive?(rows: readonly ResultRow[]): readonly ResultRow[]
}

export interface TrialContext<Config extends TrialConfig = TrialConfig> {
  readonly config: Config
  readonly choice: TargetChoice
  readonly program: string
  readonly testCase: TrialCase
  readonly progress: RunProgress
  readonly signal: AbortSignal
  /** What else the measurement starts. */
  readonly parts: Parts
  /**
   * Starts a server and a generator; both are stopped when the measurement ends.
   * @param mayDie Whether the measurement goes on when one of them ends by itself.
   */
  startTrial(settings: TargetSettings, mayDie?: boolean): Promise<Trial>
  /**
   * Starts two servers on a broker of their own, and a generator for the second; all are stopped when the measurement
   * ends.
   */
  startRelay(kind: RelayBrokerKind, settings: TargetSettings): Promise<Relay>
}

/** The same for a scenario that also measures a server that runs already. */
export type SubjectContext<Config extends TrialConfig> = Omit<TrialContext<Config>, 'startTrial' | 'startRelay'> & {
  startTrial(settings: TargetSettings): Promise<Subject>
}

export interface Measured {
  readonly figures: Figures
  readonly series?: readonly Omit<ResultSeries, 'target' | 'subscribers' | 'condition' | 'repeat'>[]
  readonly notes?: readonly string[]
}

/** The members of a row that the measurement decides; those left out are `null`. */
export type Figures = Partial<Pick<ResultRow, FigureKey>> & {
  readonly verdict: RowVerdict
  readonly verdictReason: string | null
  readonly [key: string]: unknown
}

type FigureKey =
  | 'publishedPerSecond'
  | 'deliveriesPerSecond'
  | 'bytesPerSecond'
  | 'gapCount'
  | 'duplicateCount'
  | 'serverCpuSeconds'
  | 'deliveriesPerServerCpuSecond'
  | 'serverRssBytes'
  | 'latencyMs'
  | 'serverEventLoopLagMs'
  | 'generatorCpuSeconds'
  | 'generatorUtilization'

/** A rate, or a cost per CPU second; `null` when there was no time to divide by. */
export function per(count: number | null, seconds: number | null): number | null {
  return count !== null && seconds !== null && seconds > 0 ? count / seconds : null
}
