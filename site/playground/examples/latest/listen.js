import { listen, setup } from 'webmq-client'
import { latest } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// 100 prices per second and key; one per second is shown.
listen(
  'prices.*',
  latest((price, { key }) => console.log(key, price), { every: 1000 }),
)
