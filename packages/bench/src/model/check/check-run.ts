import type { Coefficients } from '../coefficients.js'
import { paceOf } from '../flush-pacing.js'
import { simulate } from '../simulate.js'
import type { CheckCase } from './cases.js'

/** One figure, predicted and measured. */
export interface Checked {
  readonly figure: 'server CPU s' | 'broker CPU s' | 'deliveries' | 'p99 ms'
  readonly predicted: number
  readonly measured: number
  /** (predicted - measured) / measured. */
  readonly error: number
}

/** A case and how wrong the model is about it. */
export interface CheckResult {
  readonly label: string
  readonly figures: readonly Checked[]
}

const US = 1e-6
const NS = 1e-9
/** The simulator plays at most this many deliveries' worth of messages; the rest repeats them. */
const MAX_MESSAGES = 500

/** Predicts a run that was made, and compares. @param cores Of the machine of the run. */
export function checkRun(coefficients: Coefficients, one: CheckCase, cores: number): CheckResult {
  const predicted = predictRun(coefficients, one, cores)
  const { measured } = one
  const figures = [
    compared('server CPU s', predicted.serverCpuSeconds, measured.serverCpuSeconds),
    compared('broker CPU s', predicted.brokerCpuSeconds, measured.brokerCpuSeconds),
    compared('deliveries', predicted.deliveries, measured.deliveries),
    compared('p99 ms', predicted.p99Ms, measured.p99Ms),
  ]
  return { label: one.label, figures: figures.filter((figure) => figure !== undefined) }
}

function compared(figure: Checked['figure'], predicted: number | null, measured: number | null): Checked | undefined {
  if (predicted === null || measured === null || measured === 0) return undefined
  return { figure, predicted, measured, error: (predicted - measured) / measured }
}

/** The figures that a run would have by the model; `null`: the model says nothing of it. */
export function predictRun({ node, brokers }: Coefficients, one: CheckCase, cores: number) {
  const { kind, connections, nodes, seconds, published, publishedBy, listenersPerKey, payloadBytes, isLogged } = one
  const broker = kind === 'memory' ? undefined : brokers[kind]
  const deliveries = published * listenersPerKey
  const frameS = node.frameUs * US + payloadBytes * node.byteNs * NS
  const writeS = node.writeUs * US
  const perConnection = seconds > 0 ? deliveries / Math.max(1, connections) / seconds : 0
  const { framesPerWrite } = paceOf({
    connections: connections / nodes,
    messagesPerSecond: perConnection,
    writeS,
    frameS,
  })
  const presence = nodes <= 1 ? 1 : -Math.expm1(listenersPerKey * Math.log1p(-1 / nodes))
  const copies = published * nodes * (isLogged ? 1 : presence)
  const processes = nodes + (publishedBy === 'relay' ? 1 : 0)
  const publishUs = publishedBy === 'client' ? node.clientPublishUs : broker === undefined ? node.publishUs : 0
  const brokerPublishUs = isLogged ? broker?.publisherLoggedUs : broker?.publisherUs
  const listenerUs = isLogged ? broker?.listenerLoggedUs : broker?.listenerUs
  const serverCpuSeconds =
    processes * node.idleCores * seconds +
    (publishedBy === 'outside' ? 0 : published * (publishUs + (brokerPublishUs ?? 0)) * US) +
    copies * (listenerUs ?? 0) * US +
    deliveries * (writeS / framesPerWrite + frameS)
  const brokerCpuSeconds =
    broker === undefined
      ? null
      : isLogged
        ? (published * broker.brokerLoggedUs + copies * broker.brokerLoggedCopyUs) * US
        : (published * broker.brokerUs + copies * broker.brokerCopyUs) * US
  const hopS = broker === undefined ? 0 : broker.hopP50Ms / 1_000
  const p99Ms =
    one.isPaced && seconds > 0
      ? simulate({
          cores,
          nodes,
          connections: listenersPerKey,
          messages: Math.max(1, Math.min(MAX_MESSAGES, Math.round(published))),
          messagesPerSecond: published / seconds,
          hopS,
          writeS,
          frameS,
          readS: node.generatorReadUs * US,
          readFrameS: node.generatorFrameUs * US,
        }).p99Ms
      : null
  return { serverCpuSeconds, brokerCpuSeconds, deliveries, p99Ms }
}
