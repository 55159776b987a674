import { type RunningBroker, startBroker } from '../brokers/running-broker.js'
import type { RunProgress } from '../run-progress.js'
import type { TargetSettings, TlsFiles } from '../targets/messages.js'
import type { TargetChoice } from '../targets/target-table.js'
import { RELAY_NODE_COUNT, Relay, type RelayBrokerKind } from './relay.js'
import { Trial } from './trial.js'
import type { TrialConfig } from './trial-options.js'
import type { TrialStep } from './trial-plan.js'
import type { Measured, TrialScenario } from './trial-scenario.js'

/** The environment of a measurement, beside its step. */
export interface MeasureContext<Config extends TrialConfig> {
  readonly scenario: TrialScenario<Config>
  readonly config: Config
  /** Path of the load generator. */
  readonly program: string
  /** Absent: no TLS. */
  readonly tls?: TlsFiles
  readonly progress: RunProgress
  /** Aborted when the user interrupts. */
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
  signal.throwIfAborted()
  const trials: Trial[] = []
  const brokers: Promise<RunningBroker>[] = []
  let isOver = false
  let breakOff: (reason: unknown) => void = () => undefined
  const broken = new Promise<never>((_, reject) => {
    breakOff = reject
  })
  const abort = () => breakOff(signal.reason)
  signal.addEventListener('abort', abort, { once: true })

  const begin = async <Kind extends Trial>(trial: Kind, mayDie: boolean): Promise<Kind> => {
    trials.push(trial)
    if (!mayDie) trial.failed.catch(breakOff)
    await trial.ready()
    onVersion(choice.label, trial.target.version)
    return trial
  }
  const optionsOf = (wanted: TargetSettings) => {
    if (isOver) throw new Error('the measurement is over')
    const settings = tls === undefined ? wanted : { ...wanted, tls }
    return { choice, settings, program, generatorThreads: config.generatorThreads }
  }
  const startTrial = async (settings: TargetSettings, mayDie = false) => {
    progress.phase('starting')
    return await begin(new Trial(optionsOf(settings)), mayDie)
  }
  const startRelay = async (kind: RelayBrokerKind, settings: TargetSettings) => {
    progress.phase(`starting ${kind}`)
    optionsOf(settings)
    const starting = startBroker({ kind }, RELAY_NODE_COUNT, { hasLog: settings.history !== undefined })
    brokers.push(starting)
    const broker = await starting
    return await begin(new Relay(optionsOf(settings), broker), false)
  }
  const work = scenario.measure({ config, choice, program, testCase, progress, signal, startTrial, startRelay })
  try {
    const measured = await Promise.race([broken, work])
    const suites = new Set(trials.flatMap((trial) => trial.suites))
    if (suites.size === 0) return measured
    return { ...measured, notes: [...(measured.notes ?? []), `${choice.label}: ${[...suites].join(', ')}.`] }
  } finally {
    isOver = true
    signal.removeEventListener('abort', abort)
    work.catch(() => undefined) // If it was not the first to fail, it fails now because everything is taken away.
    await Promise.all(trials.map((trial) => trial.stop()))
    // A process that did not start left nothing behind, and the measurement has failed because of it.
    await Promise.allSettled(brokers.map(async (starting) => await (await starting).stop()))
  }
}
