import { refusalOf } from 'webmq-client/protocol'
import { trieWords } from '../../kernel/ports/trie-words.js'
import { type GroupKind, type GroupName, groupIdOf } from './group-message.js'
import { MAX_GROUPS } from './known-groups.js'
import { overlap } from './overlap.js'
import { Shares } from './shares.js'

/**
 * Queue groups of one client whose patterns may match one key: those with a wildcard, and those of the key itself. Each
 * costs every publisher there as much as one more message.
 */
const MAX_MATCHING = 32
/** Patterns that are compared with a new one, per unit of work. */
const COMPARED_PER_UNIT = 4

interface Pattern {
  readonly words: readonly string[]
  groupCount: number
}

interface Client {
  /** Its memberships of each group, over its connections. */
  readonly counts: Map<string, number>
  /** Patterns of its groups; and those of them with a wildcard. */
  readonly patterns: Record<GroupKind, Map<string, Pattern>>
  readonly wildcards: Record<GroupKind, Set<Pattern>>
}

/** The queue groups that each client, a user or an address of anonymous ones, is a member of by this node. */
export class ClientGroups {
  readonly #clients = new Map<string, Client>()
  readonly #shares = new Shares(MAX_GROUPS)

  /**
   * @param knownCount Queue groups that this node knows, this one not among them; `undefined` if it is.
   * @throws {WebMQError} `E_LISTEN_LIMIT`
   */
  assertRoom(client: string | undefined, name: GroupName, knownCount: number | undefined): void {
    if (client === undefined) return
    const own = this.#clients.get(client)
    if (own?.counts.has(groupIdOf(name)) === true) return
    if (!this.#shares.hasRoom(client, knownCount ?? 0)) {
      throw tooMany(name, `${MAX_GROUPS}; ${this.#shares.maxOfClient} of one user or address`)
    }
    if (own !== undefined && matchingCount(own, name) >= MAX_MATCHING) {
      throw tooMany(name, `${MAX_MATCHING} of one user or address that may match one key`)
    }
  }

  /** Units of work that the check for one more group takes. */
  unitsOf(client: string, { kind, pattern }: GroupName): number {
    const own = this.#clients.get(client)
    return own === undefined || !hasWildcard(pattern) ? 0 : own.wildcards[kind].size / COMPARED_PER_UNIT
  }

  add(client: string | undefined, name: GroupName): void {
    if (client === undefined) return
    const { kind, pattern } = name
    const own = this.#clients.get(client) ?? newClient()
    this.#clients.set(client, own)
    const id = groupIdOf(name)
    const count = own.counts.get(id) ?? 0
    own.counts.set(id, count + 1)
    if (count > 0) return
    this.#shares.add(client)
    const known = own.patterns[kind].get(pattern)
    if (known !== undefined) {
      known.groupCount++
      return
    }
    const added = { words: trieWords(pattern), groupCount: 1 }
    own.patterns[kind].set(pattern, added)
    if (hasWildcard(pattern)) own.wildcards[kind].add(added)
  }

  remove(client: string | undefined, name: GroupName): void {
    const own = client === undefined ? undefined : this.#clients.get(client)
    const id = groupIdOf(name)
    const count = own?.counts.get(id)
    if (client === undefined || own === undefined || count === undefined) return
    if (count > 1) {
      own.counts.set(id, count - 1)
      return
    }
    own.counts.delete(id)
    this.#shares.remove(client)
    const { kind, pattern } = name
    const known = own.patterns[kind].get(pattern)
    if (known !== undefined && --known.groupCount === 0) {
      own.patterns[kind].delete(pattern)
      own.wildcards[kind].delete(known)
    }
    if (own.counts.size === 0) this.#clients.delete(client)
  }
}

/**
 * Groups of a kind that match what the pattern does, as far as that is cheap to say: for a key those of the same key, for
 * others those with a wildcard that may match the same key.
 */
function matchingCount({ patterns, wildcards }: Client, { kind, pattern }: GroupName): number {
  if (!hasWildcard(pattern)) return patterns[kind].get(pattern)?.groupCount ?? 0
  const words = trieWords(pattern)
  let count = 0
  for (const other of wildcards[kind]) {
    if (overlap(words, other.words)) count += other.groupCount
    if (count >= MAX_MATCHING) break
  }
  return count
}

function newClient(): Client {
  return {
    counts: new Map(),
    patterns: { listen: new Map(), respond: new Map() },
    wildcards: { listen: new Set(), respond: new Set() },
  }
}

function hasWildcard(pattern: string): boolean {
  return pattern.includes('*') || pattern.includes('#')
}

function tooMany({ pattern }: GroupName, detail: string) {
  return refusalOf('E_LISTEN_LIMIT', { detail: `${pattern}: at most ${detail} (queue groups)` })
}
