import type { ClientVerb } from 'webmq-client/protocol'
import { auth } from './auth.js'
import type { Handler } from './handler.js'
import { history } from './history.js'
import { listen, sendingOn } from './listen.js'
import { ping } from './ping.js'
import { presence } from './presence.js'
import { publish } from './publish.js'
import { reply, request } from './request.js'
import { read, stream } from './stream.js'
import { unlisten } from './unlisten.js'

/** Every verb's handler; a missing verb does not compile. */
export const handlers: { readonly [V in ClientVerb]: Handler<V> } = {
  auth,
  listen: sendingOn(listen),
  unlisten,
  publish,
  history,
  presence,
  request,
  reply,
  stream,
  read,
  ping,
}
