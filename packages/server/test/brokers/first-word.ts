import { MAX_KEY_BYTES } from 'webmq-client/protocol'
import type { Broker, BrokerSink, InboundMessage, OutboundMessage } from '../../src/ports/broker.js'
import { type HistoryOptions, type HistoryRule, HistoryRules } from '../../src/ports/history-rules.js'
import { andThen } from '../../src/ports/maybe-promise.js'
import { RetainRules } from '../../src/ports/retain-rules.js'

/**
 * The same broker, where every key has one more first word: what a log with partitions keeps of one partition is then what
 * a log keeps of all keys.
 */
export function behindFirstWord(broker: Broker, word: string): Broker {
  const longestBytes = MAX_KEY_BYTES - word.length - 1
  // A longer key stays as it is: it may then be in another partition.
  const added = (key: string) => (Buffer.byteLength(key) > longestBytes ? key : `${word}.${key}`)
  const removed = (key: string) => (key.startsWith(`${word}.`) ? key.slice(word.length + 1) : key)
  const inside = (message: OutboundMessage) => ({ ...message, key: added(message.key) })
  const outside = (message: InboundMessage) => ({ ...message, key: removed(message.key) })
  const sinkOf = (sink: BrokerSink): BrokerSink => ({
    deliver: (message) => sink.deliver(outside(message)),
    status: (status, cause) => sink.status(status, cause),
    gap: (reason, isAffected = () => true) => sink.gap(reason, (pattern) => isAffected(added(pattern))),
    refused: (message) =>
      sink.refused({ ...message, pattern: message.pattern === undefined ? undefined : removed(message.pattern) }),
  })
  const all = [added('#')]
  // Of all keys, also of those that stay as they are.
  const bound = (pattern: string) => (pattern === '#' ? '#' : added(pattern))
  return {
    name: broker.name,
    capabilities: broker.capabilities,
    start: (sink) => broker.start(sinkOf(sink)),
    bind: (pattern) => broker.bind(bound(pattern)),
    unbind: (pattern) => broker.unbind(bound(pattern)),
    publish: (message) => broker.publish(inside(message)),
    publishBatch: async (messages) =>
      (await broker.publishBatch?.(messages.map(inside))) ??
      (await Promise.all(messages.map((message) => broker.publish(inside(message))))),
    read: (range, patterns, reader) =>
      andThen(broker.read(range, patterns.map(added), reader), (result) => ({
        ...result,
        messages: result.messages.map(outside),
      })),
    position: async () => (await broker.position(all)) ?? (await broker.read({ last: 0 }, all)).position,
    stats: () => broker.stats(),
    stop: (limitMs) => broker.stop(limitMs),
  }
}

/** The same rules, for keys with one more first word. */
export function rulesBehindFirstWord({ history, retain, ...bounds }: HistoryOptions, word: string): HistoryOptions {
  const added = (pattern: string) => `${word}.${pattern}`
  // A key of each rule tells the rest of the rule.
  const rules = history.patterns.map((pattern) => ({
    ...(history.ruleOf(pattern.replaceAll(/[*#]/g, 'x')) as HistoryRule),
    pattern: added(pattern),
  }))
  return {
    ...bounds,
    history: new HistoryRules(rules),
    retain: retain && new RetainRules(retain.patterns.map(added), retain.limits),
  }
}
