import { setup } from 'webmq-client'
import { presence } from 'webmq-client/parts'

setup({ url: 'ws://127.0.0.1:8080/ws' })

const room = presence('room.42')
room.on('enter', ({ data }) => console.log(`${data.name} has come`))
room.on('update', ({ data }) => console.log(`${data.name} is ${data.mood}`))
room.on('leave', ({ data }) => console.log(`${data.name} has left`))
