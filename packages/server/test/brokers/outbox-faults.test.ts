import { it } from 'vitest'
import { startRedis } from 'webmq-services'
import { play } from './outbox-play.js'

it('each committed row is published once and in order while nodes, Redis and PostgreSQL are killed', async () => {
  await play(() => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] }), 5_000)
})
