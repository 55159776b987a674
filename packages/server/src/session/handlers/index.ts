import type { ClientVerb } from 'webmq-client/protocol'
import { auth } from './auth.js'
import type { Handler } from './handler.js'
import { history } from './history.js'
import { listen } from './listen.js'
import { ping } from './ping.js'
import { presence } from './presence.js'
import { publish } from './publish.js'
import { unlisten } from './unlisten.js'

/** Every verb's handler; a verb without one does not compile. */
export const handlers: { readonly [V in ClientVerb]: Handler<V> } = {
  auth,
  listen,
  unlisten,
  publish,
  history,
  presence,
  ping,
}
