import { listen, setup } from 'webmq-client'
import { loaded } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

// Lose the log while the network is cut:
// after the gap it loads by itself.
async function load({ cause }) {
  console.log(`load, because: ${cause}`)
  // Here your app fetches its state.
}

listen(
  'chat.*.message',
  loaded(({ text }) => console.log(text), load),
)
