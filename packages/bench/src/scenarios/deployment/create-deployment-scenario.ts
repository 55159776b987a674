import type { Command, OptionValues } from 'commander'
import { addDeploymentOptions, type Deployment, readDeployment } from '../../deployment/deployment.js'
import { checkLimits, type OfferedLoad } from '../../deployment/limits.js'
import { probe, type Reached } from '../../deployment/probe.js'
import { faultText } from '../../deployment/refusal.js'
import { RunError } from '../../exit-codes.js'
import type { Connected, ConnectOptions, LoadgenStats } from '../../loadgen/events.js'
import { Loadgen } from '../../loadgen/loadgen.js'
import { positiveNumber } from '../../options.js'
import type { Scenario } from '../../scenario.js'
import { type TargetChoice, webmq } from '../../targets/target-table.js'
import { createTrialScenario } from '../../trials/create-trial-scenario.js'
import type { TrialConfig } from '../../trials/trial-options.js'
import type { Measured, TrialContext, TrialScenario } from '../../trials/trial-scenario.js'

/** Settings of every scenario of a server that runs already. */
export interface DeploymentConfig extends TrialConfig {
  /** Without credentials. */
  readonly url: string
  /** Connects per second, at most. */
  readonly connectRate: number
}

/** The environment of one measurement of a server that runs already. */
export interface DeploymentContext<Config extends DeploymentConfig> extends TrialContext<Config> {
  readonly deployment: Deployment
  readonly reached: Reached
}

/** The specific part of such a scenario. */
export interface DeploymentScenario<Config extends DeploymentConfig>
  extends Omit<TrialScenario<Config>, 'abilities' | 'subject' | 'readConfig' | 'measure' | 'defaults'> {
  readonly defaults: Omit<TrialScenario['defaults'], 'targets'>
  readConfig(common: DeploymentConfig, values: OptionValues): Config
  /** The largest load of any case. */
  loadOf(config: Config): OfferedLoad
  measure(context: DeploymentContext<Config>): Promise<Measured>
}

/** Connects per second, so that a server in production does not notice them. */
const DEFAULT_CONNECT_RATE = 50
/** Handshakes in flight. */
const MAX_CONNECTING = 32
const MAX_HINTS = 3

/** Completes a scenario with the flags of a deployment, its limits, and a first try. */
export function createDeploymentScenario<Config extends DeploymentConfig>(
  scenario: DeploymentScenario<Config>,
): Scenario {
  const trialOf = (deployment: Deployment | undefined): TrialScenario<Config> => ({
    ...scenario,
    abilities: [],
    defaults: { repeat: 1, ...scenario.defaults, targets: [] },
    subject: subjectOf(deployment),
    addOptions(command: Command) {
      addDeploymentOptions(command)
      command.option('--connect-rate <n>', 'connects per second', positiveNumber, DEFAULT_CONNECT_RATE)
      scenario.addOptions?.(command)
    },
    readConfig(common, values) {
      const url = deployment === undefined ? '' : `${deployment.url.origin}${deployment.url.pathname}`
      const config = scenario.readConfig({ ...common, url, connectRate: values.connectRate as number }, values)
      if (deployment?.isUnlimited !== true) {
        checkLimits({ connectsPerSecond: config.connectRate, ...scenario.loadOf(config) })
      }
      return config
    },
    async measure(context) {
      if (deployment === undefined) throw new Error('a scenario without its deployment')
      context.progress.phase('trying the server')
      const reached = await probe(deployment, context.signal)
      return await scenario.measure({ ...context, deployment, reached })
    },
  })
  const { prepare: _, ...shown } = createTrialScenario(trialOf(undefined))
  return {
    ...shown,
    prepare: (values: OptionValues) => createTrialScenario(trialOf(readDeployment(values))).prepare(values),
  }
}

function subjectOf(deployment: Deployment | undefined): TargetChoice {
  const label = deployment?.url.host ?? ''
  return { label, spec: { name: label, program: 'raw', settings: {}, abilities: [], wire: webmq } }
}

/** Starts a load generator. */
export async function startLoadgen({ program, config, parts }: Pick<TrialContext, 'program' | 'config' | 'parts'>) {
  const loadgen = await parts.add(() => new Loadgen({ program, threads: config.generatorThreads }))
  await loadgen.ready()
  return loadgen
}

/** Makes connections at the rate of the run; some may fail. */
export async function tryConnect<Config extends DeploymentConfig>(
  loadgen: Loadgen,
  count: number,
  { deployment, reached, config }: DeploymentContext<Config>,
): Promise<Connected> {
  const { url, token, isInsecure, ca } = deployment
  const isSecure = url.protocol === 'wss:'
  const serverName = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const options: ConnectOptions = {
    ...webmq.connect,
    path: `${url.pathname}${url.search}`,
    host: reached.address,
    port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
    authority: url.host,
    count,
    batch: MAX_CONNECTING,
    perSecond: config.connectRate,
    ...(token === undefined ? {} : { tokens: [token] }),
    ...(isSecure ? { tls: { serverName, insecure: isInsecure, ...(ca === undefined ? {} : { ca }) } } : {}),
  }
  return await loadgen.connect(options)
}

/**
 * Makes connections at the rate of the run.
 * @throws {RunError} unless every single one is made; it says why, and what to do.
 */
export async function connect<Config extends DeploymentConfig>(
  loadgen: Loadgen,
  count: number,
  context: DeploymentContext<Config>,
): Promise<Connected> {
  const connected = await tryConnect(loadgen, count, context)
  if (connected.failed > 0) {
    throw new RunError(
      `${connected.failed} of ${count} connections failed: ${whyFailed(connected, context.deployment)}`,
    )
  }
  return connected
}

/** Why connections failed, the most frequent reason first, each with what to do. */
export function whyFailed({ errors }: Connected, { keyPrefix }: Deployment): string {
  return Object.entries(errors)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MAX_HINTS)
    .map(([reason, count]) => `${faultText(reason, keyPrefix)} (${count.toLocaleString('en')})`)
    .join('. ')
}

/** The connections that the server has closed, as a sentence; `null`: none. */
export function whyClosed({ closed }: LoadgenStats, { keyPrefix }: Deployment): string | null {
  const reasons = Object.entries(closed).map(
    ([code, count]) => `${count.toLocaleString('en')} connections: ${faultText(`closed ${code}`, keyPrefix)}`,
  )
  return reasons.length === 0 ? null : `the server closed ${reasons.join(', ')}`
}

/** How TLS was established, as a note; none without TLS. */
export function tlsNotes({ tls }: Connected): string[] {
  return tls === null ? [] : [`TLS: ${Object.keys(tls.suites).join(', ')}.`]
}
