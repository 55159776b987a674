import { describe, expect, it } from 'vitest'
import { deferred } from '../base/deferred.js'
import { Router } from '../patterns/router.js'
import type { ConnectionId } from '../ports/transport.js'
import { Interest } from './interest.js'
import { Listens } from './listens.js'
import { LiveBuffers } from './live-buffers.js'

describe('a listen that is taken back before its pattern is bound', () => {
  it('leaves nothing at the broker once it is', async () => {
    const bind = deferred()
    const unbound: string[] = []
    const broker = { bind: () => bind.promise, unbind: (pattern: string) => void unbound.push(pattern) }
    const router = new Router()
    const interest = new Interest({ router, broker, onError: (error) => expect(error).toBeUndefined() })
    const transport = { join: () => undefined, leave: () => undefined, setOverflow: () => undefined }
    const listens = new Listens(1 as ConnectionId, {
      transport,
      interest,
      delivery: { tellGapBeforeLeaving: () => undefined },
      liveBuffers: new LiveBuffers(),
      maxLiveBufferBytes: 1_000,
      listensChanged: () => undefined,
    })
    const { abort, bound } = listens.open('chat.*')
    abort()
    expect([unbound, router.has('chat.*')]).toEqual([[], true])
    bind.resolve()
    await bound
    expect([unbound, router.has('chat.*'), listens.size]).toEqual([['chat.*'], false, 0])
  })
})
