# A receiver around verify.rb: PORT, WEBHOOK_SECRET and STORED say where, with what, and into which file.

require "json"
require "socket"
require ARGV.fetch(0)

SECRETS = ENV.fetch("WEBHOOK_SECRET").split("\n")
STORED = File.open(ENV.fetch("STORED"), "a")
STORED.sync = true
SEEN = {}
LOCK = Mutex.new

def body(socket, headers)
  return socket.read(headers.assoc("content-length")[1].to_i) unless headers.assoc("transfer-encoding")

  body = "".b
  while (size = socket.gets.hex).positive?
    body << socket.read(size)
    socket.gets
  end
  body
end

def status(socket)
  socket.gets
  headers = socket.each_line("\r\n", chomp: true).take_while { |line| !line.empty? }
  headers = headers.map { |line| name, value = line.split(":", 2); [name.downcase, value.strip] }
  signatures = headers.select { |name, _| name == "x-service-signature" }.map(&:last)
  body = body(socket, headers)
  return "400 Bad Request" unless ServiceWebhooks.verify(signatures, body, SECRETS)

  event = JSON.parse(body)
  LOCK.synchronize do
    STORED.puts("#{event["id"]} #{event["type"]}") unless SEEN[event["id"]]
    SEEN[event["id"]] = true
  end
  "204 No Content"
end

server = TCPServer.new("127.0.0.1", ENV.fetch("PORT").to_i)
server.listen(128)
loop do
  Thread.new(server.accept) do |socket|
    socket.write("HTTP/1.1 #{status(socket)}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    socket.close
  end
end
