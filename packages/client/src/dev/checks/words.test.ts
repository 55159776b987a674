import { expect, it, vi } from 'vitest'
import { createTestClient } from '../testing/index.js'
import { warnOfWords } from './words.js'

const warned = vi.spyOn(console, 'warn').mockReturnValue()

/** `chat..message` is a key of AMQP, but most often it was `chat.${room}.message` without a room. */
it('warns once of each key and pattern with a missing word, which is sent all the same', async () => {
  const { client, server } = createTestClient()
  await client.listen('chat..a', () => undefined).ready
  await client.publish('chat..a', 1)
  await client.publish('chat.undefined.a', 1)
  await client.publish('chat.nullable.undefinedness', 1)
  expect(warned.mock.calls.map(([text]) => text)).toEqual([
    expect.stringMatching(/^webmq: "chat\.\.a" has an empty word: is one of its variables missing/),
    expect.stringContaining('"chat.undefined.a" has the word "undefined"'),
  ])
  expect(server.received.map(({ verb }) => verb)).toEqual(['listen', 'publish', 'publish', 'publish'])
  await client.close()
})

it('does not fill a console', () => {
  warned.mockClear()
  for (let count = 0; count < 1_000; count++) warnOfWords(`a..${count}`)
  expect(warned.mock.calls.length).toBeLessThan(20)
})
