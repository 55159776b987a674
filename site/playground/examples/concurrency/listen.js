import { listen, setup } from 'webmq-client'
import { concurrently } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Each message begins when the one before has ended.
async function save({ text }) {
  console.log(text, 'begins')
  await new Promise((resolve) => setTimeout(resolve, 800))
  console.log(text, 'is saved')
}

listen('chat.*.message', concurrently(save, { concurrency: 1 }))
