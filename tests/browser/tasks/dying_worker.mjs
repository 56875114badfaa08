// A worker that ends itself after a while, of which no browser tells the page.
import '/build/package/dist/worker.js';

setTimeout(() => self.close(), 700);
