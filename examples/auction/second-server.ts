// The same program once more, as on another machine.
process.env.PORT = process.env.SECOND_PORT
await import('./server')

export {}
