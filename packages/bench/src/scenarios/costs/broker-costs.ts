import { setTimeout as sleep } from 'node:timers/promises'
import type { ServiceBrokerKind } from '../../brokers/broker-choice.js'
import type { Counted } from '../../loadgen/events.js'
import { leastSquares } from '../../measure/least-squares.js'
import type { BrokerCosts } from '../../model/coefficients.js'
import type { TargetSettings } from '../../targets/messages.js'
import type { Relay } from '../../trials/relay.js'
import { latencyMs, type Trial, type Usage, usageBetween } from '../../trials/trial.js'
import type { Measured, TrialContext } from '../../trials/trial-scenario.js'
import { judge } from '../../trials/verdict.js'
import type { CostsConfig } from './config.js'
import { startCountingProxy } from './counting-proxy.js'

const PLAIN_KEY = 'bench.tick'
const LOGGED_KEY = 'bench.log.tick'
const LOGGED_MESSAGES = 10_000
/** At the second node. */
const SOME_LISTENERS = 10
/** Low enough that no message waits for another. */
const HOP_RATE = 200
/** A slow broker has passed everything on by then. */
const SETTLE_MS = 300
const TAIL_MS = 10_000
/** The kernel's accounting of other processes is in ticks. */
const TICK_S = 0.01

type CostsContext = TrialContext<CostsConfig>

/** One window: what went through the broker, and what all processes took. */
interface Window {
  readonly seconds: number
  readonly plain: number
  readonly logged: number
  /** Passed to nodes. */
  readonly plainCopies: number
  readonly loggedCopies: number
  readonly deliveries: number
  readonly usage: Usage
  readonly counted: Counted | undefined
}

/** What happens in a window. */
interface Plan {
  readonly perSecond: number
  readonly isLogged: boolean
  /** At the second node. */
  readonly listeners: number
  /** Nodes that follow the log. */
  readonly followers: number
  readonly plainCopies: number
}

/** The costs of messages through one broker: node A publishes, node B listens, node C comes later and follows the log. */
export async function measureBroker(context: CostsContext): Promise<Measured> {
  const { config, testCase, startRelay } = context
  const settings: TargetSettings = { history: [`bench.log.#=${LOGGED_MESSAGES}`] }
  const relay = await startRelay(testCase.mode as ServiceBrokerKind, settings)
  const { rate } = config
  const plan = (isLogged: boolean, listeners: number, perSecond = rate): Plan => ({
    perSecond,
    isLogged,
    listeners,
    followers: 2,
    plainCopies: listeners > 0 ? 1 : 0,
  })
  await window(relay, context, plan(false, 1)) // Compilers and pools.
  await window(relay, context, plan(true, 1))
  const hop = await window(relay, context, plan(false, 1, HOP_RATE))
  const two = [
    await window(relay, context, { ...plan(false, 0), perSecond: 0 }),
    await window(relay, context, plan(false, 0)),
    await window(relay, context, plan(false, 1)),
    await window(relay, context, plan(false, SOME_LISTENERS)),
    await window(relay, context, plan(true, 0)),
    await window(relay, context, plan(true, 1)),
    hop,
  ]
  const proxy = await startCountingProxy(relay.nodeOptions(2).broker)
  try {
    const third = await context.startTrial({ ...settings, ...relay.nodeOptions(2), broker: proxy.url })
    await listen(third, PLAIN_KEY, 1)
    const three: Window[] = []
    const counted = async (plan: Plan) => {
      const before = proxy.counts()
      const one = await window(relay, context, plan)
      const after = proxy.counts()
      three.push(one)
      return { one, down: after.down - before.down + after.up - before.up }
    }
    const logged = await counted({ ...plan(true, 0), followers: 3 })
    const plain = await counted({ ...plan(false, 0), plainCopies: 1 })
    const sent = await sentBytes(third, proxy, config)
    const windows = [...two, ...three]
    const { payload } = config
    const fits = { publisher: publisherFit(windows), listener: listenerFit(windows), broker: brokerFit(windows) }
    const [, , publisherS = 0, publisherLoggedS = 0] = fits.publisher.coefficients
    const [, listenerS = 0, listenerLoggedS = 0] = fits.listener.coefficients
    const [, brokerS = 0, brokerCopyS = 0, brokerLoggedS = 0, brokerLoggedCopyS = 0] = fits.broker.coefficients
    const hopMs = latencyMs(hop.counted?.latencyUs)
    const broker: BrokerCosts = {
      publisherUs: publisherS * 1e6,
      publisherLoggedUs: publisherLoggedS * 1e6,
      listenerUs: listenerS * 1e6,
      listenerLoggedUs: listenerLoggedS * 1e6,
      brokerUs: brokerS * 1e6,
      brokerCopyUs: brokerCopyS * 1e6,
      brokerLoggedUs: brokerLoggedS * 1e6,
      brokerLoggedCopyUs: brokerLoggedCopyS * 1e6,
      publishBytes: beyond(sent.plain, payload),
      copyBytes: beyond(plain.down / Math.max(1, plain.one.plain), payload),
      publishLoggedBytes: beyond(sent.logged, payload),
      copyLoggedBytes: beyond(logged.down / Math.max(1, logged.one.logged), payload),
      hopP50Ms: hopMs?.p50 ?? 0,
      hopP99Ms: hopMs?.p99 ?? 0,
    }
    const name = testCase.mode
    const residuals = {
      [`${name}: CPU of the publishing node`]: fits.publisher.residual,
      [`${name}: CPU of the listening node`]: fits.listener.residual,
      [`${name}: CPU of the broker`]: fits.broker.residual,
    }
    const lostCount = windows.reduce(
      (sum, { counted }) => sum + (counted?.gapCount ?? 0) + (counted?.missingCount ?? 0),
      0,
    )
    return { figures: { broker, residuals, windows: windows.map(described), ...judge({ lostCount }) } }
  } finally {
    await proxy.stop()
  }
}

/** Connects and listens with a generator of its own. */
async function listen(trial: Trial, key: string, count: number) {
  const loadgen = trial.addLoadgen()
  await loadgen.ready()
  await trial.tryConnect({ count }, { loadgen })
  await loadgen.send([`listen 1 ${key}`], 'ok 1')
  return loadgen
}

async function window(relay: Relay, { config, progress, signal }: CostsContext, plan: Plan): Promise<Window> {
  const { perSecond, isLogged, listeners } = plan
  const key = isLogged ? LOGGED_KEY : PLAIN_KEY
  progress.phase(`${perSecond}/s ${isLogged ? 'logged' : 'not logged'}, ${listeners} listeners`)
  const loadgen = listeners === 0 ? undefined : await listen(relay, key, listeners)
  await loadgen?.startCounting({ latency: true, fanout: false })
  const start = await relay.mark()
  const durationMs = config.duration * 1_000
  const published =
    perSecond === 0
      ? undefined
      : await relay.publisher.publishPaced({
          perSecond,
          durationMs,
          payloadBytes: config.payload,
          isThrottled: false,
          key,
        })
  const counted = await loadgen?.stopCounting({ lastSeq: published?.lastSeq ?? 0, timeoutMs: TAIL_MS })
  await sleep(published === undefined ? durationMs : SETTLE_MS, undefined, { signal })
  const end = await relay.mark()
  await loadgen?.stop()
  const count = published?.count ?? 0
  const [plain, logged] = isLogged ? [0, count] : [count, 0]
  return {
    seconds: (end.atUs - start.atUs) / 1e6,
    plain,
    logged,
    plainCopies: plain * plan.plainCopies,
    loggedCopies: logged * plan.followers,
    deliveries: counted?.frames ?? 0,
    usage: usageBetween(start, end),
    counted,
  }
}

/** Bytes that a node sends for a message of its own. */
async function sentBytes(
  { target }: Trial,
  proxy: { counts(): { readonly up: number } },
  { rate, duration, payload }: CostsConfig,
): Promise<{ readonly plain: number; readonly logged: number }> {
  const of = async (key: string) => {
    const before = proxy.counts().up
    const { count } = await target.publishPaced({
      perSecond: Math.max(1 / duration, rate / 4),
      durationMs: duration * 1_000,
      payloadBytes: payload,
      isThrottled: false,
      key,
    })
    await sleep(SETTLE_MS)
    return (proxy.counts().up - before) / Math.max(1, count)
  }
  return { plain: await of(PLAIN_KEY), logged: await of(LOGGED_KEY) }
}

function publisherFit(windows: readonly Window[]) {
  return leastSquares(
    windows.map(({ seconds, plain, logged, usage }) => ({
      // A window that publishes starts a thread that paces it.
      counts: [seconds, plain + logged > 0 ? 1 : 0, plain, logged],
      total: usage.publisherCpuSeconds ?? 0,
      noise: TICK_S,
    })),
  )
}

function listenerFit(windows: readonly Window[]) {
  return leastSquares(
    windows.map(({ seconds, plain, logged, deliveries, usage }) => ({
      // The second node gets plain messages with a listener there, and all logged ones.
      counts: [seconds, deliveries > 0 ? plain : 0, logged, deliveries],
      total: usage.listenerCpuSeconds ?? 0,
      noise: TICK_S,
    })),
  )
}

function brokerFit(windows: readonly Window[]) {
  return leastSquares(
    windows.map(({ seconds, plain, plainCopies, logged, loggedCopies, usage }) => ({
      counts: [seconds, plain, plainCopies, logged, loggedCopies],
      total: usage.brokerCpuSeconds ?? 0,
      noise: TICK_S,
    })),
  )
}

/** What is kept of a window. */
function described({ usage, counted, ...counts }: Window) {
  const { publisherCpuSeconds, listenerCpuSeconds, brokerCpuSeconds } = usage
  return {
    ...counts,
    publisherCpuSeconds,
    listenerCpuSeconds,
    brokerCpuSeconds,
    p50Us: counted?.latencyUs?.p50 ?? null,
  }
}

function beyond(bytes: number, payload: number): number {
  return Math.max(0, bytes - payload)
}
