import type { SeededBrokerName } from './brokers.js'
import type { Patch } from './bundle.js'

/** A defect that the product has had, or is as one that it has had. */
export interface Mutant {
  /** What went wrong with it. */
  readonly name: string
  /** Where it is found first: its schedules are played up to a bound. */
  readonly broker: SeededBrokerName
  readonly patch: Patch
}

const REMOTE = 'packages/server/src/brokers/remote'
const REDIS = 'packages/server/src/brokers/redis'
const NATS = 'packages/server/src/brokers/nats'
const LISTENING = 'packages/client/src/listening'

function mutant(name: string, broker: SeededBrokerName, file: string, from: string, to: string): Mutant {
  return { name, broker, patch: { file, from, to } }
}

/** Each is put in alone, and must be found. */
export const MUTANTS: readonly Mutant[] = [
  mutant(
    'a message that was sent again into another log is left out without a gap (seed 480)',
    'model',
    `${REMOTE}/log-replica.ts`,
    'else if (!this.#isRepeating)',
    'else if (Date.now() === 0)',
  ),
  mutant(
    'a node reads another log before it has copied what it does not deliver again',
    'model',
    `${REMOTE}/log-replica.ts`,
    'if (this.#isRepeating || (range.isState',
    'if ((range.isState',
  ),
  mutant(
    'a new log is not told to the listeners',
    'redis',
    `${REMOTE}/log-replica.ts`,
    'if (hadBegun) this.#broker.receiver.gap(reason)',
    '',
  ),
  mutant(
    'a node that is behind reads as if it had everything',
    'redis',
    `${REMOTE}/log-replica.ts`,
    'if (awaited === undefined || !this.#log.isAfterEnd(awaited)) return',
    'if (Date.now() > 0) return',
  ),
  mutant(
    'a node serves before it has caught up with the log',
    'redis',
    `${REMOTE}/broker.ts`,
    'if (link.log !== undefined) await this.replica?.follow(link.log)',
    'if (link.log !== undefined) void this.replica?.follow(link.log).catch(() => undefined)',
  ),
  mutant(
    'what a lost connection has published is sent behind what its client publishes again elsewhere',
    'redis',
    `${REMOTE}/pending-publishes.ts`,
    'if (this.#authorFor(message)?.isClosed === true)',
    'if (Date.now() === 0)',
  ),
  mutant(
    'a position does not know its message (ADR 48)',
    'redis',
    'packages/server/src/brokers/log/gaps.ts',
    'return epoch === this.#log.epoch && fingerprint !== 0 &&',
    'return epoch === this.#log.epoch || fingerprint < 0 &&',
  ),
  mutant(
    'nobody notices that a link is half-open',
    'redis',
    `${REMOTE}/liveness.ts`,
    'this.#options.silent(',
    'void String(',
  ),
  mutant(
    'a Redis that was restarted is followed without anybody who vouches for its log',
    'redis',
    `${REDIS}/open.lua.ts`,
    'elseif knownReign ~= reign then',
    'elseif false then',
  ),
  mutant(
    'a node vouches for a Redis without having seen the end of its log',
    'redis',
    `${REDIS}/open.lua.ts`,
    'if tonumber(NODE_OFFSET) == last then return true end',
    'if last then return true end',
  ),
  mutant(
    'a log that has lost its end is taken for the same, where it has gone on',
    'redis',
    `${REDIS}/open.lua.ts`,
    "isEndLost = string.match(entry[1], '%d+$') ~= NODE_TIME",
    'isEndLost = false',
  ),
  mutant(
    'a log that ends before the position of a node is taken for the same',
    'redis',
    `${REDIS}/open.lua.ts`,
    'isEndLost = offset > last or',
    'isEndLost =',
  ),
  mutant(
    'the log forgets the ids of messages',
    'redis',
    `${REDIS}/append.lua.ts`,
    "redis.call('HSETNX', IDS, id, offset) == 0",
    "redis.call('HSETNX', IDS, id .. offset, offset) == 0",
  ),
  mutant(
    'what came over the channel while pages were read is dropped',
    'redis',
    `${REDIS}/log-reader.ts`,
    'while (!this.isStopped && !this.#takeWaiting())',
    'while (this.#waiting.splice(0).length < 0)',
  ),
  mutant(
    'a hole in what came over the channel is passed over',
    'redis',
    `${REDIS}/log-reader.ts`,
    'if (batch.epoch === this.#epoch && batch.firstOffset > this.#offset + 1) return false',
    'if (batch.epoch === this.#epoch && batch.firstOffset > this.#offset + 1) this.#offset = batch.firstOffset - 1',
  ),
  mutant(
    'the client says that there is no log where the log has lost its end',
    'model',
    `${LISTENING}/asking.ts`,
    "(position ? 'broker-lost' : 'no-history')",
    "'no-history'",
  ),
  mutant(
    'the client goes on from where another subscription has got',
    'redis',
    `${LISTENING}/resume-point.ts`,
    'return latest !== this.#latestBefore && isSeen(this.position, latest) ? latest : this.position',
    'return latest ?? this.position',
  ),
  mutant(
    'the client does not tell a gap that an answer has told',
    'redis',
    `${LISTENING}/subscription.ts`,
    'if (gap) this.gap({ pattern: this.pattern, reason: gap, since })',
    'if (false) this.gap({ pattern: this.pattern, reason: gap, since })',
  ),
  mutant(
    'a node does not see that a stream has lost its end',
    'nats',
    `${NATS}/generation-guard.ts`,
    'if (state.lastSequence < sequence) throw await this.end(state)',
    '',
  ),
  mutant(
    'the consumer of a stream begins behind the next message',
    'nats',
    `${NATS}/log-follow.ts`,
    '? start.sequence + 1 :',
    '? start.sequence + 2 :',
  ),
]
