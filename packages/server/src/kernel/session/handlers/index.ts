import { andThen, type MaybePromise } from '../../base/maybe-promise.js'
import { askToListen } from '../opening.js'
import { auth } from './auth.js'
import type { KernelVerbs } from './handler.js'
import { assertMayRead, history } from './history.js'
import { listen, requestOf, sendingOn } from './listen.js'
import { ping } from './ping.js'
import { publish } from './publish.js'
import { unlisten } from './unlisten.js'

/** The verbs that are no feature's; a missing one does not compile. */
export const kernelVerbs: KernelVerbs = {
  auth: { handle: auth },
  listen: {
    handle: sendingOn(listen),
    ask: (_, session, message) => unchanged(askToListen(session, requestOf(message))),
  },
  unlisten: { handle: unlisten },
  // The publisher asks about publishes itself.
  publish: { handle: publish },
  history: {
    handle: history,
    ask: (hooks, session, message) => {
      assertMayRead(session, session.services, message)
      return unchanged(hooks.listen(session, 'history', message.key, true))
    },
  },
  ping: { handle: ping },
}

function unchanged(asked: MaybePromise<void>): MaybePromise<undefined> {
  return andThen(asked, () => undefined)
}
