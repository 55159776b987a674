import { publish, setup } from 'webmq-client'
import { remove } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

let turn = 0
setInterval(async () => {
  const key = `seats.${turn % 3}`
  if (turn++ % 6 < 3) await publish(key, 'Ada')
  else await remove(key)
}, 1000)
