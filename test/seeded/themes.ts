import type { PublisherOptions } from '../../packages/check/src/actors/publisher.js'
import type { ServerOptions } from '../../packages/server/src/doors/options/server-options.js'

/** What a schedule has, beside its faults. */
export interface SeededTheme {
  /** Patterns of the keys that are logged. Default: `#`. */
  readonly logged?: readonly string[]
  /** Of half of the processes, which have other rules than the rest. Default: there are none. */
  readonly loggedByOthers?: readonly string[]
  /** Options of the nodes. */
  readonly server?: ServerOptions
  /** For each listener what it listens to. Default: one pattern each. */
  readonly listens?: readonly (readonly string[])[]
  readonly publisher?: Partial<Pick<PublisherOptions, 'burstCount' | 'everyMs' | 'maxInFlight' | 'payloadBytes'>>
  /** Of one queue group, all on one node. Default 0. */
  readonly memberCount?: number
  /** Whether clients move more. Default: no. */
  readonly isOfMoves?: boolean
  /** Whether the broker says that it is of a newer version: RabbitMQ then gives headers back in another form. */
  readonly isNew?: boolean
}

export type SeededThemeName = keyof typeof SEEDED_THEMES

export const SEEDED_THEMES = {
  anything: {},
  /** All depends on which node has bound what when, since no log makes up for it. */
  unlogged: { logged: [], isOfMoves: true },
  'logged in part': { logged: ['a.#'] },
  /** Rules that are rolled out, and taken back. */
  'other rules': { loggedByOthers: ['a.#'] },
  /** What is live on a connection comes in one order, whatever pattern it is for [P-8.7]. */
  'many listens': {
    listens: [
      ['#', 'a.#', 'b'],
      ['a.x', 'a.y'],
      ['b', 'a.#'],
    ],
  },
  'queue group': { memberCount: 2 },
  /** Each message has attributes. */
  attributes: { server: { meta: ['#'] }, isNew: true },
  /** More than a node gives to a slow broker at a time: publishers wait, and are refused. */
  flood: { publisher: { burstCount: 40, everyMs: 250, maxInFlight: 400 } },
} satisfies Record<string, SeededTheme>
