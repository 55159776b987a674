import { expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { LogRestart } from 'webmq-server/brokers'
import { redisError } from './error.js'

const hidden = (text: string) => text.replaceAll('secret', '***')

// A node that opened its log again said that the broker was lost: the error had become another one on its way.
it('leaves errors of ours as they are, and makes others of those of the library', () => {
  for (const own of [new LogRestart('another epoch'), new WebMQError('E_BROKER_REFUSED')])
    expect(redisError(own, hidden)).toBe(own)
  const reply = new Error('LOADING of secret')
  expect(redisError(reply, hidden)).toMatchObject({ message: 'LOADING of ***', cause: reply })
  expect(redisError(new Error('WRONGPASS'), hidden)).toMatchObject({ code: 'E_BROKER_REFUSED' })
})
