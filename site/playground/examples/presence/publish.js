import { setup } from 'webmq-client'
import { presence } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

const room = presence('room.42')
const wait = () => new Promise((resolve) => setTimeout(resolve, 1000))
for (;;) {
  await room.enter({ name: 'Ada', mood: 'new' })
  await wait()
  await room.update({ name: 'Ada', mood: 'happy' })
  await wait()
  await room.leave()
  await wait()
}
