import { refusalOf } from 'webmq-client/protocol'
import { trieWords } from '../../kernel/ports/trie-words.js'
import { type GroupName, groupIdOf } from './group-message.js'
import { MAX_GROUPS } from './known-groups.js'
import { overlap } from './overlap.js'
import { hasRoom, shareOf } from './shares.js'

/**
 * Queue groups of one client whose patterns may match one key: those with a wildcard, and those of the key itself. Each
 * costs every publisher there as much as one more message.
 */
const MAX_MATCHING = 16
/** Words of a pattern that are compared with those of another one, per unit of work. */
const WORDS_PER_UNIT = 32

interface OwnGroup {
  readonly name: GroupName
  readonly words: readonly string[]
  /** Members, over all connections of the client. */
  memberCount: number
}

/** The queue groups that each client, a user or an address of anonymous ones, is a member of by this node. */
export class ClientGroups {
  readonly #byClient = new Map<string, Map<string, OwnGroup>>()

  /** Units of work that {@link assertRoom} takes. */
  unitsOf(client: string, { pattern }: GroupName): number {
    return ((this.#byClient.get(client)?.size ?? 0) * trieWords(pattern).length) / WORDS_PER_UNIT
  }

  /**
   * @param knownCount Queue groups that this node knows; 0 if this one is among them.
   * @throws {WebMQError} `E_LISTEN_LIMIT`
   */
  assertRoom(client: string, name: GroupName, knownCount: number): void {
    const own = this.#byClient.get(client)
    if (own?.has(groupIdOf(name)) === true) return
    if (!hasRoom(MAX_GROUPS, client, own?.size ?? 0, knownCount)) {
      throw tooMany(name, `${MAX_GROUPS}; ${shareOf(MAX_GROUPS)} of one user or address`)
    }
    if (own === undefined) return
    const words = trieWords(name.pattern)
    let count = 0
    for (const other of own.values()) {
      if (!mayMatchOneKey(other, name, words) || ++count < MAX_MATCHING) continue
      throw tooMany(name, `${MAX_MATCHING} of one user or address that may match one key`)
    }
  }

  add(client: string, name: GroupName): void {
    const own = this.#byClient.get(client) ?? new Map<string, OwnGroup>()
    this.#byClient.set(client, own)
    const id = groupIdOf(name)
    const known = own.get(id)
    if (known !== undefined) known.memberCount++
    else own.set(id, { name, words: trieWords(name.pattern), memberCount: 1 })
  }

  remove(client: string, name: GroupName): void {
    const own = this.#byClient.get(client)
    const id = groupIdOf(name)
    const known = own?.get(id)
    if (own === undefined || known === undefined || --known.memberCount > 0) return
    own.delete(id)
    if (own.size === 0) this.#byClient.delete(client)
  }
}

/** Groups of a key are counted apart: a group of all keys would have no room beside many of one key each. */
function mayMatchOneKey(other: OwnGroup, { kind, pattern }: GroupName, words: readonly string[]): boolean {
  if (other.name.kind !== kind) return false
  if (other.name.pattern === pattern) return true
  return hasWildcard(words) && hasWildcard(other.words) && overlap(words, other.words)
}

function hasWildcard(words: readonly string[]): boolean {
  return words.includes('*') || words.includes('#')
}

function tooMany({ pattern }: GroupName, detail: string) {
  return refusalOf('E_LISTEN_LIMIT', { detail: `${pattern}: at most ${detail} (queue groups)` })
}
