const GOODS =
  'Cocoa Coffee Copper Cotton Gold Lead Maize Nickel Oats Oil Rice Rubber Salt Silver Sugar Tea Tin Wheat Wool Zinc'.split(
    ' ',
  )
const PLACES = 'Accra Baku Bern Cairo Dakar Delhi Kyiv Lima Oslo Quito Riga Rome Seoul Sofia Tunis'.split(' ')

/** What people call a price: `prices.17` is `Coffee Bern`. */
export function nameOf(key: string): string {
  const number = Number(key.split('.').at(-1))
  return `${GOODS[Math.floor(number / PLACES.length) % GOODS.length]} ${PLACES[number % PLACES.length]}`
}
