import type { AttackCase } from '../attack-case.js'
import { durableCases } from './durable.js'
import { frameCases } from './frames.js'
import { groupCases } from './groups.js'
import { handshakeCases } from './handshakes.js'
import { httpCases } from './http.js'
import { listenCases } from './listens.js'
import { messageCases } from './messages.js'
import { presenceCases } from './presence.js'
import { publishCases } from './publishes.js'
import { readCases } from './reads.js'
import { streamCases } from './streams.js'
import { tokenCases } from './tokens.js'
import { webhookCases } from './webhooks.js'

/** The catalogue: every way to misuse a server that is measured. */
export const hostileCases: readonly AttackCase[] = [
  ...handshakeCases,
  ...frameCases,
  ...messageCases,
  ...listenCases,
  ...publishCases,
  ...readCases,
  ...presenceCases,
  ...streamCases,
  ...groupCases,
  ...durableCases,
  ...tokenCases,
  ...httpCases,
  ...webhookCases,
]
