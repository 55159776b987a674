import { startBroker } from '../brokers/running-broker.js'
import { withParts } from '../parts.js'
import type { RunProgress } from '../run-progress.js'
import type { TargetSettings, TlsFiles } from '../targets/messages.js'
import type { TargetChoice } from '../targets/target-table.js'
import { RELAY_NODE_COUNT, Relay, type RelayBrokerKind } from './relay.js'
import { Trial } from './trial.js'
import type { TrialConfig } from './trial-options.js'
import type { TrialStep } from './trial-plan.js'
import type { Measured, TrialScenario } from './trial-scenario.js'

export interface MeasureContext<Config extends TrialConfig> {
  readonly scenario: TrialScenario<Config>
  readonly config: Config
  readonly program: string
  readonly tls?: TlsFiles
  readonly progress: RunProgress
  readonly signal: AbortSignal
  /** Receives each server's description of itself. */
  onVersion(target: string, version: string): void
}

/**
 * Makes one measurement; when it settles, no process of it is left.
 * @throws the error of the measurement or of a process that died, or the reason of the abort.
 */
export async function measureOnce<Config extends TrialConfig>(
  { target: choice, testCase }: TrialStep<TargetChoice>,
  { scenario, config, program, tls, progress, signal, onVersion }: MeasureContext<Config>,
): Promise<Measured> {
  const wanted = (settings: TargetSettings) => ({
    choice,
    settings: tls === undefined ? settings : { ...settings, tls },
    program,
    generatorThreads: config.generatorThreads,
  })
  return await withParts(signal, async (parts) => {
    const trials: Trial[] = []
    const begin = async <Kind extends Trial>(create: () => Kind, mayDie = false): Promise<Kind> => {
      const trial = await parts.add(create, mayDie)
      trials.push(trial)
      await trial.ready()
      onVersion(choice.label, trial.target.version)
      return trial
    }
    const startTrial = async (settings: TargetSettings, mayDie?: boolean) => {
      progress.phase('starting')
      return await begin(() => new Trial(wanted(settings)), mayDie)
    }
    const startRelay = async (kind: RelayBrokerKind, settings: TargetSettings) => {
      progress.phase(`starting ${kind}`)
      const hasLog = settings.history !== undefined
      const broker = await parts.add(() => startBroker({ kind }, RELAY_NODE_COUNT, { hasLog }))
      return await begin(() => new Relay(wanted(settings), broker))
    }
    const context = { config, choice, program, testCase, progress, signal, parts, startTrial, startRelay }
    const measured = await scenario.measure(context)
    const suites = new Set(trials.flatMap((trial) => trial.suites))
    if (suites.size === 0) return measured
    return { ...measured, notes: [...(measured.notes ?? []), `${choice.label}: ${[...suites].join(', ')}.`] }
  })
}
