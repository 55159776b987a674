import { setup } from 'webmq-client'
import { request } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

let count = 0
setInterval(async () => {
  const numbers = [++count, 2, 3]
  try {
    console.log(numbers.join(' + '), '=', await request('sum.today', numbers))
  } catch (error) {
    console.log(error.code)
  }
}, 1000)
