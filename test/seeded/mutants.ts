import type { SeededBrokerName } from './brokers.js'
import type { Patch } from './bundle.js'
import type { SeededThemeName } from './themes.js'

/** A defect that the product has had, or is as one that it has had. */
export interface Mutant {
  /** What went wrong with it. */
  readonly name: string
  /** Where it is found first: its schedules are played up to a bound. */
  readonly broker: SeededBrokerName
  readonly theme: SeededThemeName
  readonly patch: Patch
}

const REMOTE = 'packages/server/src/adapters/brokers/remote'
const REDIS = 'packages/broker-redis/src'
const NATS = 'packages/broker-nats/src'
const LISTENING = 'packages/client/src/core/listening'

/** @param where A broker, and a theme behind it unless that is `anything`. */
function mutant(name: string, where: string, file: string, from: string, to: string): Mutant {
  const [broker, theme = 'anything'] = where.split(', ') as [SeededBrokerName, SeededThemeName?]
  return { name, broker, theme, patch: { file, from, to } }
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
    'if (hadBegun) this.#parts.receiver.gap(reason)',
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
    'if (link.log !== undefined) await this.#replica?.follow(link.log)',
    'if (link.log !== undefined) void this.#replica?.follow(link.log).catch(() => undefined)',
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
    'elseif knownTerm ~= term then',
    'elseif false then',
  ),
  mutant(
    'a position of an earlier log is read as one of this log',
    'redis',
    'packages/server/src/adapters/brokers/log/gaps.ts',
    "if (epoch !== this.#log.epoch) return 'epoch-changed'",
    '',
  ),
  mutant(
    'a publish is answered before it has its place in the log',
    'redis',
    `${REMOTE}/pending-publishes.ts`,
    'accepted === undefined && this.#entries.get(at)?.message.isLogged === true ? undefined : this.#take(at)',
    'this.#take(at)',
  ),
  mutant(
    'an answer on one connection is a sign of life of the other',
    'redis',
    `${REDIS}/pair.ts`,
    'this.#publishingLiveness?.alive()',
    'for (const each of [this.#publishingLiveness, this.#subscribedLiveness]) each?.alive()',
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
  mutant(
    'a log is followed by nodes that do not know which keys it lacks (ADR 53)',
    'rabbitmq, other rules',
    `${REMOTE}/marked-log.ts`,
    'this.isMarked = await link.isMarked()',
    'this.isMarked = true || (await link.isMarked())',
  ),
  mutant(
    'a node that does not answer has no members any more (ADR 73)',
    'redis, queue group',
    'packages/server/src/features/nodes/shared-table.ts',
    '    this.#silent.add(node)',
    '    this.left(node, false)',
  ),
  mutant(
    'attributes of logged messages are bytes, which RabbitMQ 3.13.5 and later give back as text',
    'rabbitmq, attributes',
    'packages/broker-rabbitmq/src/publisher.ts',
    "? 'both' : 'text'",
    "? 'both' : 'bytes'",
  ),
  mutant(
    'nodes do not see that others log other keys (ADR 50)',
    'redis, other rules',
    'packages/server/src/features/nodes/log-agreement.ts',
    "const isDifferent = typeof loggedKeys === 'string' && loggedKeys !== own",
    'const isDifferent = false && loggedKeys !== own',
  ),
  mutant(
    'a log that was in doubt is read as whole (ADR 50)',
    'redis, other rules',
    'packages/server/src/adapters/brokers/log/gaps.ts',
    'epoch === this.upTo?.epoch && offset <= this.upTo.offset ? this.reason : undefined',
    "epoch === '' && offset < 0 ? this.reason : undefined",
  ),
  mutant(
    'the mark that RabbitMQ was not restarted always counts as set (ADR 52)',
    'rabbitmq',
    'packages/broker-rabbitmq/src/log-marks.ts',
    'return this.#declared(epoch, false)',
    "return Promise.resolve(epoch !== '')",
  ),
  mutant(
    'the mark that all servers of NATS were not restarted always counts as set (ADR 52)',
    'nats',
    `${NATS}/restart-mark.ts`,
    'return delivered.consumer_seq > 0',
    'return delivered.consumer_seq >= 0',
  ),
  mutant(
    'a listen is answered before the queue of its node has given out what it holds',
    'rabbitmq, unlogged',
    'packages/broker-rabbitmq/src/queue-bindings.ts',
    'if (isBind) this.#mark(made)',
    'if (isBind && Date.now() === 0) this.#mark(made)',
  ),
]
